"""JupyterLab as a person meets it: in a browser, with the first notebook run from the menu."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Home

pytestmark = [pytest.mark.deck, pytest.mark.browser]

# The notebook trains for some 20 s on two cores.
_RUN_MS = 240_000


@pytest.fixture(scope="module")
def address(deck_home: Home) -> Iterator[str]:
    report = deck_home.json("up")
    yield report["address"]
    deck_home.run("down")


@pytest.fixture(scope="module")
def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    pytest.skip("Chromium is not installed")


def test_the_first_notebook_runs_in_the_browser_and_shows_its_loss_curve(
    address: str, chromium: str, tmp_path: Path
) -> None:
    from playwright.sync_api import expect, sync_playwright

    pictures = Path(os.environ.get("TORCHDECK_TEST_PICTURES") or tmp_path)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page(viewport={"width": 1400, "height": 1100})
        page.goto(address.replace("/lab?", "/lab/tree/first_steps.ipynb?"), wait_until="domcontentloaded")
        notebook = page.locator(".jp-NotebookPanel")
        expect(notebook).to_be_visible(timeout=90_000)
        expect(page.get_by_text("| Idle").first).to_be_visible(timeout=90_000)
        page.screenshot(path=pictures / "lab_opened.png")
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        # Cells out of sight are not in the page: the kernel's state says when all have run.
        page.wait_for_function(
            """() => {
                const cells = document.querySelectorAll('.jp-CodeCell .jp-InputPrompt');
                return cells.length && ![...cells].some(cell => cell.textContent.includes('*'))
                    && document.body.innerText.includes('Idle');
            }""",
            timeout=_RUN_MS,
        )
        page.screenshot(path=pictures / "lab_run.png")
        chart = page.locator(".jp-OutputArea-output svg", has_text="loss")
        chart.scroll_into_view_if_needed()
        expect(chart).to_be_visible()
        page.screenshot(path=pictures / "lab_chart.png")
        errors = page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.error']")
        assert errors.count() == 0
        browser.close()
    assert (pictures / "lab_chart.png").stat().st_size > 20_000


def test_without_the_token_the_browser_is_asked_for_it(address: str, chromium: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page()
        page.goto(address.split("?", maxsplit=1)[0])
        assert "login" in page.url
        assert page.locator("input[type=password]").count() == 1
        browser.close()
