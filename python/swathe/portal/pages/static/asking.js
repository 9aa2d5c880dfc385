// Confirms actions in a dialog. Without scripts, a separate page does.

async function ask(link) {
  const answer = await fetch(link.href);
  if (!answer.ok) {
    location.href = link.href;
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const question = page.getElementById("question");
  if (!question) {
    location.href = link.href;
    return;
  }
  const dialog = document.createElement("dialog");
  question.className = "stack";
  const heading = question.querySelector("h1");
  const title = document.createElement("h2");
  title.id = "asked";
  title.textContent = heading.textContent;
  heading.replaceWith(title);
  dialog.setAttribute("aria-labelledby", title.id);
  dialog.append(question);
  dialog.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) {
      event.preventDefault();
      dialog.close();
    }
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    link.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-ask]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  ask(link);
});
