"""A simulated store that nothing befalls keeps every promise of a store, with each engine.

The tests are those of all stores; they get the `store` of this folder.
"""

from tests.stores import test_conformance, test_receipts, test_tasks

_WITH_A_RETENTION_OF_THEIR_OWN = {
    "test_a_cursor_outlives_what_it_points_to",
    "test_so_many_receipts_are_kept_of_each_task",
    "test_the_newest_receipt_always_stays",
    "test_a_shortened_retention_takes_effect_step_by_step",
}
"""These make stores themselves."""

globals().update(
    {
        name: value
        for module in (test_conformance, test_receipts, test_tasks)
        for name, value in vars(module).items()
        if name.startswith("test_") and name not in _WITH_A_RETENTION_OF_THEIR_OWN
    }
)
