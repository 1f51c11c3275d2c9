"""File names of exported results."""

from __future__ import annotations

import pytest

from holdfast.pipeline.results import export


@pytest.mark.req("PIP-3")
def test_results_of_a_post_implementation_review_have_their_known_names() -> None:
    names = [
        export.result_name(stage, "post_impl_review")
        for stage in (
            "gemini_review",
            "gemini_test_design",
            "gemini_static_verify",
            "codex_review",
            "codex_test_impl",
            "codex_verify",
        )
    ]
    assert names == [
        "gemini_review.md", "test_matrix.md", "verification_checklist.md", "codex_precision_review.md",
        "test_implementation_report.md", "verification_report.md",
    ]  # fmt: skip
    assert export.result_name("pi_review", "review_cross") == "pi_review.md"
