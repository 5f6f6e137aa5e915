-- The block in which the quorum has read the allowance of a reservation as zero: in this block and later ones the reservation counts no more.
alter table reservations add column if not exists allowance_gone bigint;
-- Each network finds the approvals that it revokes by itself.
create index concurrently if not exists transfers_to_revoke_by_network on transfers (from_network, revoke_at) where revoke_at is not null;
drop index concurrently if exists transfers_to_revoke;
