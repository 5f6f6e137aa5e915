-- No statement reads events by the time of their row: lists, deletions and the archive read ids, which begin with the time. While `events` is locked, the
-- locks of its partitions are awaited for a fraction of a second only.
do $$ begin
  lock table only events in access exclusive mode;
  set local lock_timeout = '200ms';
  drop index if exists events_by_age;
end $$;
