"use strict";
(() => {
  const data = JSON.parse(document.getElementById("story").textContent);
  const plane = data.plane;
  const each = (selector, act, within = document) => within.querySelectorAll(selector).forEach(act);

  // Where on the plane a pointer is.
  const place = (svg, event) => {
    const box = svg.getBoundingClientRect();
    return [
      plane.x0 + ((event.clientX - box.left) / box.width) * (plane.x1 - plane.x0),
      plane.y1 - ((event.clientY - box.top) / box.height) * (plane.y1 - plane.y0),
    ];
  };
  const put = (mark, x, y) => {
    mark.setAttribute("cx", x - plane.x0);
    mark.setAttribute("cy", plane.y1 - y);
    mark.removeAttribute("visibility");
  };
  const told = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1)).replace("-", "−");

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
      readout.textContent = `x ${told(x)}, y ${told(y)}: ${parts.length ? parts.join(", ") : "nothing recorded here"}`;
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
    let now = 0;
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
      } else readout.textContent = tracks[now].text;
    };
    viewer.querySelector(".controls").hidden = false;
    thumbs.forEach((thumb, index) => thumb.addEventListener("click", () => show(index)));
    viewer.querySelector("[data-turn='-1']").addEventListener("click", () => show(now - 1));
    viewer.querySelector("[data-turn='1']").addEventListener("click", () => show(now + 1));
    if (slider) {
      slider.addEventListener("input", walk);
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
})();
