"use strict";
(() => {
  const data = JSON.parse(document.getElementById("story").textContent);
  const plane = data.plane;
  const each = (selector, act, within = document) => within.querySelectorAll(selector).forEach(act);

  // Where on the plane a pointer is, also where only a part of it is shown.
  const place = (svg, event) => {
    const box = svg.getBoundingClientRect(), seen = svg.viewBox.baseVal;
    return [
      plane.x0 + seen.x + ((event.clientX - box.left) / box.width) * seen.width,
      plane.y1 - seen.y - ((event.clientY - box.top) / box.height) * seen.height,
    ];
  };
  const put = (mark, x, y) => {
    mark.setAttribute("cx", x - plane.x0);
    mark.setAttribute("cy", plane.y1 - y);
    mark.removeAttribute("visibility");
  };
  const minus = (text) => text.replace("-", "−");
  const told = (value) => {
    const size = Math.abs(value);
    return minus(size >= 100 ? value.toFixed(0) : size >= 1 || size === 0 ? value.toFixed(1) : value.toPrecision(2));
  };

  // Maps of numbers: all maps of a group answer together.
  each("[data-fields]", (group) => {
    const readout = group.querySelector(".readout"), before = readout.textContent;
    const look = (x, y) => {
      const parts = [];
      each("svg[data-field]", (svg) => {
        const field = data.fields[svg.dataset.field];
        const column = Math.floor((x - field.x0) / field.cell), row = Math.floor((y - field.y0) / field.cell);
        const inside = column >= 0 && column < field.columns && row >= 0 && row < field.rows;
        const value = inside ? field.values[row * field.columns + column] : null;
        if (value !== null) parts.push(`${field.name} ${told(value)}`);
        put(svg.querySelector(".probe"), x, y);
      }, group);
      readout.textContent = `x ${minus(x.toFixed(1))}, y ${minus(y.toFixed(1))}: ${parts.length ? parts.join(", ") : "nothing recorded here"}`;
    };
    each("svg[data-field]", (svg) => {
      const move = (event) => look(...place(svg, event));
      svg.addEventListener("pointermove", move);
      svg.addEventListener("pointerdown", move);
      svg.addEventListener("pointerleave", () => {
        each(".probe", (mark) => mark.setAttribute("visibility", "hidden"), group);
        readout.textContent = before;
      });
    }, group);
  });

  // One of several tracks, chosen by its small picture or by buttons, walked along by a slider.
  each("[data-viewer]", (viewer) => {
    const name = viewer.dataset.viewer, tracks = data.tracks[name];
    const main = viewer.querySelector(".main svg.map"), chosen = main.querySelector(".chosen");
    const walker = main.querySelector(".walker"), readout = viewer.querySelector(".readout");
    const slider = viewer.querySelector("input[type=range]"), thumbs = [...viewer.querySelectorAll(".thumb")];
    const about = viewer.querySelector(".about"), zoom = viewer.querySelector("[data-zoom]");
    const width = plane.x1 - plane.x0, height = plane.y1 - plane.y0;
    let now = 0, closer = 1;
    // Around the state that the slider stands at, and never beyond the plane.
    const frame = () => {
      const { xy } = tracks[now], step = Number(slider.value), wide = width / closer, high = height / closer;
      const x = Math.min(Math.max(xy[2 * step] - plane.x0 - wide / 2, 0), width - wide);
      const y = Math.min(Math.max(plane.y1 - xy[2 * step + 1] - high / 2, 0), height - high);
      main.setAttribute("viewBox", `${x} ${y} ${wide} ${high}`);
    };
    const walk = () => {
      const track = tracks[now], step = Number(slider.value);
      put(walker, track.xy[2 * step], track.xy[2 * step + 1]);
      walker.classList.toggle("is-real", !track.generated[step]);
      const kind = track.generated[step] ? "generated"
        : track.source ? `recorded, from trajectory ${track.source[step].toLocaleString("en")}` : "recorded";
      readout.textContent = `State ${step + 1} of ${track.generated.length}: ${kind}.`;
    };
    const show = (number) => {
      now = (number + tracks.length) % tracks.length;
      chosen.setAttribute("href", `#${name}-${now}`);
      thumbs.forEach((thumb, index) => thumb.setAttribute("aria-pressed", String(index === now)));
      if (slider) {
        slider.max = tracks[now].generated.length - 1;
        slider.value = 0;
        walk();
        if (closer > 1) frame();
      }
      about.textContent = tracks[now].text;
      main.setAttribute("aria-label", `Map of the chosen one: ${tracks[now].text}`);
    };
    viewer.querySelector(".controls").hidden = false;
    thumbs.forEach((thumb, index) => thumb.addEventListener("click", () => show(index)));
    viewer.querySelector("[data-turn='-1']").addEventListener("click", () => show(now - 1));
    viewer.querySelector("[data-turn='1']").addEventListener("click", () => show(now + 1));
    if (slider) {
      slider.addEventListener("input", () => {
        walk();
        if (closer > 1) frame();
      });
      zoom.addEventListener("click", () => {
        closer = closer > 1 ? 1 : 3;
        zoom.textContent = closer > 1 ? "Zoom out" : "Zoom in";
        zoom.setAttribute("aria-pressed", String(closer > 1));
        viewer.classList.toggle("zoomed", closer > 1);
        frame();
      });
      const nearest = (event) => {
        const [x, y] = place(main, event), xy = tracks[now].xy;
        let best = 0, least = Infinity;
        for (let step = 0; step * 2 < xy.length; step++) {
          const far = (xy[2 * step] - x) ** 2 + (xy[2 * step + 1] - y) ** 2;
          if (far < least) [best, least] = [step, far];
        }
        slider.value = best;
        walk();
      };
      main.addEventListener("pointermove", nearest);
      main.addEventListener("pointerdown", nearest);
    }
    show(0);
  });

  // One of several pairs, drawn close by or on the whole map, in one map a method.
  each("[data-pairs]", (figure) => {
    const maps = [...figure.querySelectorAll("svg.map")], choices = [...figure.querySelectorAll(".choice")];
    const misses = [...figure.querySelectorAll(".miss")], about = figure.querySelector(".about");
    const whole = figure.querySelector("[data-whole]");
    const all = `0 0 ${plane.x1 - plane.x0} ${plane.y1 - plane.y0}`;
    let now = 0, wide = false;
    const show = () => {
      const pair = data.pairs[now];
      maps.forEach((map, column) => {
        map.querySelector(".chosen").setAttribute("href", `#pair-${now}-${column}`);
        map.setAttribute("viewBox", wide ? all : pair.box.join(" "));
        misses[column].textContent = pair.miss[column];
      });
      choices.forEach((choice, index) => choice.setAttribute("aria-pressed", String(index === now)));
      whole.setAttribute("aria-pressed", String(wide));
      about.textContent = pair.text;
    };
    figure.querySelector(".controls").hidden = false;
    choices.forEach((choice, index) => choice.addEventListener("click", () => { now = index; show(); }));
    whole.addEventListener("click", () => { wide = !wide; show(); });
  });
})();
