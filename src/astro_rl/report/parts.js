"use strict";
(() => {
  const each = (selector, act, within = document) => within.querySelectorAll(selector).forEach(act);
  const press = (buttons, chosen) =>
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(index === chosen)));

  // Learning curves: one quantity at a time, read where the pointer is.
  each("[data-curves]", (figure) => {
    const charts = [...figure.querySelectorAll("[data-chart]")], choices = [...figure.querySelectorAll(".choice")];
    if (choices.length) figure.querySelector(".controls").hidden = false;
    choices.forEach((choice, index) => choice.addEventListener("click", () => {
      charts.forEach((chart, other) => { chart.hidden = other !== index; });
      press(choices, index);
    }));
    charts.forEach((chart) => {
      const data = JSON.parse(chart.dataset.chart), plot = chart.querySelector("svg"), hair = plot.querySelector(".hair");
      const readout = chart.querySelector(".readout"), before = readout.textContent, steps = data.steps;
      const move = (event) => {
        const box = plot.getBoundingClientRect(), width = plot.viewBox.baseVal.width;
        const last = steps[steps.length - 1], wanted = ((event.clientX - box.left) / box.width) * last;
        let point = 0;
        steps.forEach((step, index) => { if (Math.abs(step - wanted) < Math.abs(steps[point] - wanted)) point = index; });
        const x = (steps[point] / Math.max(last, 1)) * width;
        hair.setAttribute("transform", `translate(${x} 0)`);
        hair.removeAttribute("visibility");
        const told = Object.entries(data.arms).map(([arm, values]) => `${arm} ${values[point] ?? "nothing"}`);
        readout.textContent = `After ${steps[point].toLocaleString("en")} updates: ${told.join(", ")}.`;
      };
      plot.addEventListener("pointermove", move);
      plot.addEventListener("pointerdown", move);
      plot.addEventListener("pointerleave", () => {
        hair.setAttribute("visibility", "hidden");
        readout.textContent = before;
      });
    });
  });

  // Pairs that rules choose: all of them, or one kind.
  each("[data-chosen]", (figure) => {
    const choices = [...figure.querySelectorAll(".choice")];
    figure.querySelector(".controls").hidden = false;
    choices.forEach((choice, index) => choice.addEventListener("click", () => {
      if (choice.dataset.kind) figure.dataset.show = choice.dataset.kind; else delete figure.dataset.show;
      press(choices, index);
    }));
  });

  // A strip of frames: one of them large, or one after the other.
  each("[data-film]", (figure) => {
    const frames = [...figure.querySelectorAll(".frame")], screen = figure.querySelector(".screen");
    const shown = screen.querySelector(".shown"), slider = screen.querySelector("input");
    const play = screen.querySelector("[data-play]"), readout = screen.querySelector(".readout");
    let now = 0, timer = null;
    const show = (number) => {
      now = (number + frames.length) % frames.length;
      const picture = frames[now].querySelector("img");
      shown.src = picture.src;
      shown.alt = picture.alt;
      slider.value = now;
      readout.textContent = `${picture.alt}.`;
      screen.classList.toggle("is-real", frames[now].classList.contains("is-real"));
      press(frames, now);
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
      play.setAttribute("aria-pressed", "false");
    };
    play.addEventListener("click", () => {
      if (timer !== null) return stop();
      timer = setInterval(() => show(now + 1), 1000 * Number(figure.dataset.seconds));
      play.textContent = "Pause";
      play.setAttribute("aria-pressed", "true");
    });
    slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
    frames.forEach((frame, index) => frame.addEventListener("click", () => { stop(); show(index); }));
    screen.hidden = false;
    show(0);
  });
})();
