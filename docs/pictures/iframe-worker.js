// Browsers refuse workers on pages that are opened as files. There the search runs in an invisible frame instead.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      const loaded = new Promise((done) => { frame.onload = done; });
      const answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.send = async (data) => {
        await loaded;
        frame.contentWindow.postMessage = answer;
        frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      };
      frame.srcdoc = `<script src="${new URL(url, location.href).href}"></script>`;
      if (document.body) document.body.append(frame);
      else addEventListener("DOMContentLoaded", () => document.body.append(frame));
    }

    postMessage(data) {
      this.send(data);
    }
  };
  window.Worker = window.IFrameWorker;
}
