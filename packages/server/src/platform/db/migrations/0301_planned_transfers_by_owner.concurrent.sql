-- Transfers that wait for a signature or a transaction are listed in shares of their owners, those that were tried longest ago first. An earlier version
-- leaves both columns at their defaults: its transfers are one owner's. It sorts all that wait, and nothing reads `attempt` any more.
alter table sweep_transfers add column if not exists share_owner text not null default '-', add column if not exists tried_at timestamptz not null default now();
alter table transfer_authorisations add column if not exists share_owner text not null default '-', add column if not exists tried_at timestamptz not null default now();
create index concurrently if not exists sweep_transfers_planned on sweep_transfers (network, tried_at) where status = 'planned';
create index concurrently if not exists sweep_transfers_planned_by_owner on sweep_transfers (network, share_owner, tried_at) where status = 'planned';
create index concurrently if not exists sweep_transfers_in_lanes on sweep_transfers (network, share_owner) where status = 'sent' and chain_transaction_id is not null;
drop index concurrently if exists sweep_transfers_to_try;
create index concurrently if not exists transfer_authorisations_planned on transfer_authorisations (network, tried_at) where status = 'planned';
create index concurrently if not exists transfer_authorisations_planned_by_owner on transfer_authorisations (network, share_owner, tried_at) where status = 'planned';
drop index concurrently if exists transfer_authorisations_to_sign;
