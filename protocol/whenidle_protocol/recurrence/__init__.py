"""Recurrence: which local times a rule matches, and which instants they are (RFC 5545 3.3.10, SPEC 1.6, 6.6).

The work is done on whole seconds. A *local second* counts the seconds a wall calendar shows since
0001-01-01 minus one day (`date.toordinal() * 86400` plus the second of the day); an instant is the
same count of UTC. So a zone's offset is all that lies between the two, and nothing enumerates the past:

- `calendars`: which days of a year a rule takes, as the bits of one integer, and the times of such a day;
- `matches`: first, last and number of local matches in a range, by bit arithmetic;
- `zone_years`: the stretches of a year during which a zone keeps its offset;
- `timeline`: the instants, under the policies for gaps and overlaps, with UNTIL and COUNT.
"""
