"""What a person sees in a trace: spans, occurrences and curves, read out of its happenings.

Pages, Perfetto traces and stories are all made from a `Reading`. A *position* is the index of a happening in
the trace; a position with a fraction lies between two of them. Whoever draws decides which axis that becomes.
"""

from whenidle_lab.reading.curves import Curve, inboxes, mailboxes, offsets
from whenidle_lab.reading.occurrences import Occurrence
from whenidle_lab.reading.reading import Reading, read
from whenidle_lab.reading.spans import Ending, Span, SpanKind
from whenidle_lab.reading.words import sentence, shortened, span_text, visible, wall_text

__all__ = [
    "Curve",
    "Ending",
    "Occurrence",
    "Reading",
    "Span",
    "SpanKind",
    "inboxes",
    "mailboxes",
    "offsets",
    "read",
    "sentence",
    "shortened",
    "span_text",
    "visible",
    "wall_text",
]
