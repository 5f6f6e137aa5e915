-- Transfers that a child signs for (EIP-3009) and the settler sends, so that neither the child nor its master needs gas.

create table transfer_authorisations (
  transfer_id text primary key references transfers (id),
  network text not null,
  -- EIP-55 checksummed, like the account that signs.
  asset text not null,
  from_address text not null,
  -- Given under the lock of the wallet that pays, so that whoever weighed it knows what came after.
  number bigint not null generated always as identity,
  -- The authorisation, fixed before anybody signs it: whatever dies when, it can move the money once.
  nonce bytea not null check (octet_length(nonce) = 32),
  valid_before timestamptz not null,
  -- r, s and v in 65 bytes.
  signature bytea check (octet_length(signature) = 65),
  -- planned: to be signed; signed: waits for a transaction; sent: in one, which may not be mined yet; ended: as its transfer says.
  status text not null check (status in ('planned', 'signed', 'sent', 'ended')),
  attempt integer not null default 0,
  chain_transaction_id text references chain_transactions (id),
  -- Its transaction is final without it, and the chain must say what became of it.
  unresolved boolean not null default false,
  -- When the chain is asked next.
  look_at timestamptz,
  created_at timestamptz not null
);
create index transfer_authorisations_drawn on transfer_authorisations (network, from_address, number);
create index transfer_authorisations_to_send on transfer_authorisations (network, created_at) where status in ('planned', 'signed');
create index transfer_authorisations_in_transaction on transfer_authorisations (chain_transaction_id) where chain_transaction_id is not null;
create index transfer_authorisations_unresolved on transfer_authorisations (look_at) where unresolved;

-- refill: the master sends a child what its call lacks since fees have risen after the top-up.
alter table transfer_steps drop constraint transfer_steps_kind_check;
alter table transfer_steps add constraint transfer_steps_kind_check check (kind in ('top-up', 'send', 'approve', 'partner', 'claim', 'refill'));
