-- The due transfers of each partner are found by themselves, and of those the ones whose money has not left. The expression keeps a list of them from reading the
-- index of all due transfers instead.
create index concurrently if not exists transfers_to_poll on transfers (partner, (left_at is not null), coalesce(look_at, 'infinity'))
  where look_at is not null and ended_at is null;
