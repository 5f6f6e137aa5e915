-- Lists of due work give each organisation a share, however many due rows the others have: of approvals by kind, of automatic sweeps by network, and of
-- partner transfers by what they wait for (`sourceOf` of the feature transfers).
create index concurrently if not exists movement_approvals_to_apply_by_kind on movement_approvals (kind, apply_at)
  where status <> 'waiting' and applied_at is null;
create index concurrently if not exists movement_approvals_to_apply_by_organisation on movement_approvals (kind, organisation_id, apply_at)
  where status <> 'waiting' and applied_at is null;
drop index concurrently if exists movement_approvals_to_apply;
create index concurrently if not exists master_wallets_swept_by_network on master_wallets (network, auto_sweep_due_at)
  where auto_sweep is not null and retired_at is null;
create index concurrently if not exists master_wallets_swept_by_organisation on master_wallets (network, organisation_id, auto_sweep_due_at)
  where auto_sweep is not null and retired_at is null;
drop index concurrently if exists master_wallets_to_sweep_by_network;
drop index concurrently if exists master_wallets_to_sweep;
create index concurrently if not exists transfers_to_poll_by_source on transfers
  ((case when left_at is null then 'leaves ' || partner || ' ' || from_network else 'left ' || partner end), coalesce(look_at, 'infinity'))
  where look_at is not null and ended_at is null;
create index concurrently if not exists transfers_to_poll_by_organisation on transfers
  ((case when left_at is null then 'leaves ' || partner || ' ' || from_network else 'left ' || partner end), organisation_id, coalesce(look_at, 'infinity'))
  where look_at is not null and ended_at is null;
drop index concurrently if exists transfers_to_poll;
