-- The flagged and tainted money that has left a place by its ledger. If the ledger lacks a deposit, other money left instead, and as much of the
-- balance as is not booked stays on hold.
alter table tainted_places add column raw_left numeric(78, 0) not null default 0 check (raw_left >= 0);
alter table taint_checkpoints add column raw_left numeric(78, 0) not null default 0 check (raw_left >= 0);

-- The flagged and tainted money that came in, less the frozen rest.
update tainted_places p set raw_left = greatest(0, coalesce((
  select sum(case when w.aml_status = 'flagged' then w.raw_amount else w.tainted_raw_amount end) from wallet_transactions w
  where w.wallet_id = p.wallet_id and w.network = p.network and w.token = p.token and w.direction = 'in' and w.status <> 'withdrawn'
    and (w.aml_status = 'flagged' or w.tainted_raw_amount > 0 or w.frozen_raw_amount > 0)), 0) - p.raw_frozen);
update taint_checkpoints c set raw_left = greatest(0, coalesce((
  select sum(case when w.aml_status = 'flagged' then w.raw_amount else w.tainted_raw_amount end) from wallet_transactions w
  where w.wallet_id = c.wallet_id and w.network = c.network and w.token = c.token and w.direction = 'in' and w.status <> 'withdrawn'
    and (w.aml_status = 'flagged' or w.tainted_raw_amount > 0 or w.frozen_raw_amount > 0) and w.block_number <= c.block_number), 0) - c.raw_tainted);
