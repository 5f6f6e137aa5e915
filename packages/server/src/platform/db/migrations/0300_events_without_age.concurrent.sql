-- No statement reads events by the time of their row: lists, deletions and the archive read ids, which begin with the time.
drop index if exists events_by_age;
