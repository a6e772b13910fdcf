"""The whole journey in a browser: paste, rank, explain, threshold, accept, reject, reload, save, export."""

import json
import re
import shutil

import pytest
from running import running

from nlpcapsule.learning.store import FeedbackStore

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing")

expect = sync_api.expect
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LETTER = "The street lamp outside our house has been dark for a week. It is a 🌃 night."
MARKUP = "<img src=x onerror=\"document.title='broken'\"> the street lamp <b>is dark</b>"
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed (Debian: apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def service(label_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    hierarchy = folder / "broader.json"
    hierarchy.write_text(
        json.dumps(
            {"bold": {"name": "<b onclick=alert(1)>bold</b>", "broader": ["top"]}, "top": {"name": "top"}}
        ),
        encoding="utf-8",
    )
    with running(label_folder, "--feedback", folder / "feedback.sqlite", "--hierarchy", hierarchy) as started:
        started.feedback = folder / "feedback.sqlite"
        yield started


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser, service):
    """Open the page at a width; afterwards nothing may have been written to the console."""
    problems, contexts = [], []

    def opened(size="desktop", scheme="light"):
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(service.address)
        page.wait_for_selector("#model-line:not(:empty)")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def suggest(page, text=LETTER):
    page.fill("#text", text)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#reading-part:not([hidden])")
    set_threshold(page, 0)


def set_threshold(page, percent):
    page.locator("#threshold").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", percent
    )


def explain_first(page):
    page.click("#labels li:first-child .choose")
    page.wait_for_selector("#why-body h3")


def stored(service, document=None):
    with FeedbackStore(service.feedback) as store:
        return [row for row in store.export() if document in (None, row["id"])]


def test_the_whole_journey(open_page, service):
    page = open_page()
    suggest(page)
    rows = page.locator("#labels li")
    assert rows.count() > 5

    set_threshold(page, 100)
    assert rows.count() < 5
    assert re.search(r"\d+ more below 100%", page.text_content("#below"))
    set_threshold(page, 0)

    explain_first(page)
    marked = page.locator("#reading mark").all_text_contents()
    assert marked
    assert page.text_content("#reading") == LETTER
    assert all(LETTER.count(word) for word in marked)
    assert "Words that carry it" in page.text_content("#why-body")
    assert "Similar training documents" in page.text_content("#why-body")
    assert "How agreement settled" in page.text_content("#why-body")

    first, second = (rows.nth(index).get_attribute("data-label") for index in range(2))
    page.click("#labels li:nth-child(1) .yes")
    page.click("#labels li:nth-child(2) .no")
    page.fill("#search", "bin")
    page.wait_for_selector("#results li")
    page.click("#results li:first-child button")
    page.fill("#person", "ada")

    page.reload()
    page.wait_for_selector("#labels li")
    assert page.text_content("#reading") == LETTER
    assert page.get_attribute("#labels li:nth-child(1) .yes", "aria-pressed") == "true"
    assert page.get_attribute("#labels li:nth-child(2) .no", "aria-pressed") == "true"
    assert page.input_value("#person") == "ada"

    page.click("#save")
    expect(page.locator("#status")).to_have_text("Review saved.")
    (saved,) = [row for row in stored(service) if row["text"] == LETTER]
    assert saved["labels"][0] == first
    assert len(saved["labels"]) == 2
    assert (saved["rejected"], saved["person"]) == ([second], "ada")

    with page.expect_download() as download:
        page.click("#download-json")
    (document,) = json.loads(download.value.path().read_text(encoding="utf-8"))
    decisions = {row["label"]: row["decision"] for row in document["labels"]}
    assert (decisions[first], decisions[second]) == ("accepted", "rejected")
    with page.expect_download() as download:
        page.click("#download-csv")
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0] == "document,file,label,name,probability,decision"
    assert any(first in line and "accepted" in line for line in lines)


def test_all_shown_labels_are_accepted_at_once(open_page, service):
    page = open_page()
    suggest(page, "The street lamp is dark, and the bin is full.")
    page.click("#labels li:nth-child(2) .no")
    set_threshold(page, 1)
    shown = page.locator("#labels li").count()
    page.click("#accept-shown")
    assert page.locator('.yes[aria-pressed="true"]').count() == shown - 1
    assert page.locator('.no[aria-pressed="true"]').count() == 1, "a rejected label stays rejected"
    assert not page.is_visible("#accept-shown"), "nothing is left to accept"
    page.click("#save")
    expect(page.locator("#save")).to_have_text("Saved ✓")
    page.click("#labels li:nth-child(1) .no")
    expect(page.locator("#save")).to_have_text("Save review")


def test_nothing_to_review_is_shown_before_there_are_labels(open_page):
    page = open_page()
    for part in ("#slider", "#saving", "#accept-shown", "#download-json", "#why"):
        assert not page.is_visible(part), part
    assert "Labels appear here" in page.text_content("#below")
    page.click("#suggest")
    expect(page.locator("#error")).to_have_text("There is no text yet: paste one, or drop a file.")
    page.click("#dismiss")
    assert not page.is_visible("#error")
    suggest(page)
    for part in ("#slider", "#saving", "#accept-shown", "#download-json"):
        assert page.is_visible(part), part


def test_a_dropped_file_is_ranked(open_page, service):
    page = open_page()
    dropped = page.evaluate_handle(
        """text => { const data = new DataTransfer();
        data.items.add(new File([text], "letter.txt", { type: "text/plain" })); return data; }""",
        LETTER,
    )
    page.dispatch_event("body", "dragover", {"dataTransfer": dropped})
    assert "dropping" in page.get_attribute("body", "class")
    page.dispatch_event("body", "drop", {"dataTransfer": dropped})
    page.wait_for_selector("#reading-part:not([hidden])")
    assert page.text_content("#reading") == LETTER
    assert page.text_content("#queue-place") == "1 of 1: letter.txt"
    set_threshold(page, 0)
    page.click("#labels li:nth-child(1) .yes")
    page.click("#save")
    expect(page.locator("#status")).to_have_text("Review saved.")
    assert any(re.fullmatch(r"letter\.txt [0-9a-f]{8}", row["id"]) for row in stored(service))
    page.click("#edit")
    page.fill("#text", "The bin is full.")
    page.click("#suggest")
    page.wait_for_selector("#reading-part:not([hidden])")
    assert page.text_content("#queue-place") == "1 of 1: letter.txt", "an edited file keeps its name"


def test_the_theme_is_chosen_and_remembered(open_page):
    page = open_page()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    expect(page.locator("#theme")).to_have_text("Light")
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    page.wait_for_selector("#model-line:not(:empty)")
    assert page.evaluate(ground) == dark


def test_on_a_phone_the_words_of_a_chosen_label_come_into_sight(open_page):
    page = open_page("phone")
    suggest(page)
    page.locator("#labels li").last.scroll_into_view_if_needed()
    label = page.locator("#labels li").last.get_attribute("data-label")
    page.click("#labels li:last-child .choose")
    page.wait_for_selector("#why-body h3")
    expect(page.locator("#document-heading")).to_be_in_viewport()
    page.click("#close-why")
    expect(page.locator(f'#labels li[data-label="{label}"]')).to_be_in_viewport()


def test_a_service_that_stops_is_named(browser, label_folder, tmp_path):
    with running(label_folder, "--feedback", tmp_path / "feedback.sqlite") as service:
        page = browser.new_page()
        page.goto(service.address)
        page.wait_for_selector("#model-line:not(:empty)")
        service.stop()
        page.fill("#text", LETTER)
        page.click("#suggest")
        expect(page.locator("#error")).to_have_text("The service does not answer. Is it still running?")
        expect(page.locator("#suggest")).to_be_enabled()
        page.close()


def test_markup_in_texts_and_labels_is_shown_as_text(open_page):
    page = open_page()
    suggest(page, MARKUP)
    explain_first(page)
    assert page.text_content("#reading") == MARKUP
    assert page.locator("#reading img, #reading b").count() == 0
    page.fill("#search", "bold")
    page.wait_for_selector("#results li")
    page.click("#results li:first-child >> text=Add")
    assert "<b onclick=alert(1)>bold</b>" in page.text_content("#labels")
    assert page.locator("#labels b, #results b").count() == 0
    assert page.title() == "nlpcapsule: review labels"


def test_the_hierarchy_is_walked(open_page):
    page = open_page()
    page.fill("#search", "bold")
    page.click("#results .path >> text=top")
    page.wait_for_selector("#results .path >> text=narrower")
    assert page.locator("#results li").count() == 1


def test_queued_documents_are_reviewed_one_after_another(open_page, service, tmp_path):
    for name, text in {"a.txt": LETTER, "b.txt": "The bin is full."}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text(
        '{"id": "row-1", "text": "A pothole in our road."}\n', encoding="utf-8"
    )
    page = open_page()
    page.set_input_files("#folder", tmp_path)
    expect(page.locator("#queue-place")).to_contain_text("1 of 3")
    for place in (1, 2, 3):
        expect(page.locator("#queue-place")).to_contain_text(f"{place} of 3")
        page.wait_for_selector("#reading-part:not([hidden])")
        set_threshold(page, 0)
        page.click("#labels li:nth-child(1) .yes")
        page.click("#save-next")
        expect(page.locator("#status")).to_have_text("Review saved.")
    assert [row["text"] for row in stored(service, "row-1")] == ["A pothole in our road."]
    assert "(3 saved)" in page.text_content("#queue-place")


def test_everything_can_be_done_with_the_keyboard(open_page):
    page = open_page()
    page.focus("#text")
    page.keyboard.insert_text(LETTER)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "suggest"
    page.keyboard.press("Enter")
    page.wait_for_selector("#reading-part:not([hidden])")
    page.focus("#threshold")
    page.keyboard.press("Home")
    page.wait_for_selector("#labels li")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "choose"
    page.keyboard.press("Enter")
    page.wait_for_selector("#why:not([hidden])")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.get_attribute("#labels li:nth-child(1) .yes", "aria-pressed") == "true"
    assert page.evaluate("document.activeElement.className") == "yes"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "no"
    page.focus("#search")
    page.keyboard.insert_text("bin")
    page.wait_for_selector("#results li")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("added.")
    page.focus("#person")
    page.keyboard.insert_text("ada")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_have_text("Review saved.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_is_accessible_and_fits(open_page, size, scheme):
    page = open_page(size, scheme)
    suggest(page)
    explain_first(page)
    page.click("#labels li:nth-child(1) .yes")
    page.click("#labels li:nth-child(2) .no")
    page.fill("#search", "street")
    page.wait_for_selector("#results li")
    found = axe.Axe().run(page).response["violations"]
    assert [
        (row["id"], row["nodes"][0]["html"]) for row in found if row["impact"] in ("serious", "critical")
    ] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]


def test_a_label_that_the_model_does_not_know_is_added(open_page, service):
    page = open_page()
    text = "A beehive hangs in the lamp."
    suggest(page, text)
    page.fill("#search", "beehive")
    expect(page.locator("#found")).to_have_text("No label matches")
    expect(page.locator("#results li")).to_contain_text("a new label")
    page.click("#results button")
    page.fill("#search", "street-light-out")
    expect(page.locator("#results li")).to_have_count(1)
    page.click("#save")
    expect(page.locator("#status")).to_have_text("Review saved.")
    assert [row["labels"] for row in stored(service) if row["text"] == text] == [["beehive"]]


def test_words_without_any_effect_are_not_shown(open_page):
    """A service may name words whose importance would be written as 0.00."""
    page = open_page()

    def weaken(route):
        answer = route.fetch()
        found = answer.json()
        for place, word in enumerate(found["explanation"]["labels"][0]["words"]):
            word["importance"] = 0.004 if place else 1.0
        route.fulfill(response=answer, json=found)

    page.route("**/v1/explain", weaken)
    suggest(page)
    explain_first(page)
    expect(page.locator("#status")).to_contain_text("1 word carries")
    assert page.locator("#why-body table").first.locator("td.number").all_text_contents() == ["−1.00"]
    assert len(set(page.locator("#reading mark").all_text_contents())) == 1


def test_a_token_is_asked_for(browser, label_folder, tmp_path):
    (tmp_path / "token").write_text("sesame", encoding="utf-8")
    feedback = tmp_path / "feedback.sqlite"
    with running(label_folder, "--feedback", feedback, "--token-file", tmp_path / "token") as service:
        page = browser.new_page()
        page.goto(service.address)
        page.wait_for_selector("#token-form:not([hidden])")
        page.fill("#token", "sesame")
        page.keyboard.press("Enter")
        page.wait_for_selector("#model-line:not(:empty)")
        page.close()


def test_answers_are_ranked_where_the_model_ranks_answers(browser, answer_folder, tmp_path):
    with running(answer_folder, "--feedback", tmp_path / "feedback.sqlite") as service:
        page = browser.new_page()
        page.goto(service.address)
        page.wait_for_selector("#answers-part:not([hidden])")
        page.fill("#question", "When does the office open?")
        page.fill("#answers", "At nine.\n<b>Blue</b>\n")
        page.click("#rank-answers")
        page.wait_for_selector("#ranked-answers li")
        assert page.locator("#ranked-answers li").count() == 2
        assert "<b>Blue</b>" in page.text_content("#ranked-answers")
        page.click("#ranked-answers .choose")
        page.wait_for_selector("#why:not([hidden]) table")
        assert "When does the office open?" in page.text_content("#why-body")
        assert page.locator("#why-body mark").count() >= 1
        page.click("#close-why")
        assert page.locator("#why").is_hidden()
        assert page.get_attribute("#ranked-answers .choose", "aria-pressed") == "false"
        page.close()
