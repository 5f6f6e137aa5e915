-- The flagged and tainted money that has left a place by its ledger; null where it is not known. If the ledger lacks a deposit, other money left instead,
-- and as much of the balance as is not booked stays on hold. The columns change no row, so that nobody waits for more than the locks; 0202 fills them.
alter table taint_checkpoints add column raw_left numeric(78, 0);
alter table taint_checkpoints add constraint taint_checkpoints_raw_left_check check (raw_left >= 0) not valid;
alter table tainted_places add column raw_left numeric(78, 0), add column left_revision bigint not null default 0;
alter table tainted_places add constraint tainted_places_raw_left_check check (raw_left >= 0) not valid;

-- A release from before this file traces money and knows neither column: what it leaves is unknown until the place is traced again.
create function forget_raw_left() returns trigger language plpgsql as $$
begin
  new.raw_left := null;
  new.left_revision := old.left_revision + 1;
  return new;
end $$;
create trigger forget_left before update on tainted_places for each row when (new.left_revision = old.left_revision) execute function forget_raw_left();
