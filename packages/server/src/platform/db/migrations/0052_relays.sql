-- What others signed and the settler sends: payments, sweeps and gasless transfers, in one table with one queue.

create table relays (
  id bigint primary key generated always as identity,
  network text not null,
  -- The feature that it belongs to, and its row there.
  purpose text not null,
  subject_id text not null,
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  -- In lower case. The nonce space is the token (EIP-3009) or Permit2 as a whole: a nonce is used once in it by a signer.
  signer text not null,
  nonce_space text not null,
  nonce text not null,
  payload jsonb not null,
  valid_before timestamptz not null,
  -- It travels by itself: a stranger's code decides about it, or a transaction did not carry it before.
  alone boolean not null,
  state text not null check (state in ('waiting', 'included', 'settled', 'failed', 'expired', 'withdrawn')),
  -- The transaction that carries it while it is included, and that carried it once it is settled.
  transaction_id text references chain_transactions (id),
  attempts smallint not null default 0,
  -- When it may be sent; null while the chain must be read first.
  next_attempt_at timestamptz,
  -- When the chain is read for it: what became of its nonce, or whether it has expired. Null when nothing can change any more.
  check_at timestamptz,
  -- Reads without a result in a row, for the back-off.
  checks smallint not null default 0,
  created_at timestamptz not null,
  unique (network, nonce_space, signer, nonce)
);
create unique index relays_by_subject on relays (purpose, subject_id);
create index relays_in_transaction on relays (transaction_id) where state = 'included';
create index relays_waiting on relays (network, alone, next_attempt_at) where state = 'waiting';
create index relays_of_signer on relays (network, alone, organisation_id, purpose, signer, next_attempt_at, id, valid_before) where state = 'waiting';
create index relays_to_check on relays (network, check_at) where check_at is not null;

-- When a signer of an organisation has its next turn; gone when nothing of it waits.
create table relay_queues (
  network text not null,
  alone boolean not null,
  organisation_id text not null,
  purpose text not null,
  signer text not null,
  due_at timestamptz not null,
  primary key (network, alone, organisation_id, purpose, signer)
);
create index relay_queues_due on relay_queues (network, alone, organisation_id, purpose, due_at, signer);

-- When an organisation has its next turn for a purpose.
create table relay_turns (
  network text not null,
  alone boolean not null,
  organisation_id text not null,
  purpose text not null,
  due_at timestamptz not null,
  primary key (network, alone, organisation_id, purpose)
);
create index relay_turns_due on relay_turns (network, alone, due_at, organisation_id, purpose);

-- Payments that are under way.
insert into relays (network, purpose, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone, state,
  transaction_id, attempts, next_attempt_at, check_at, created_at)
select network, 'payments', id, organisation_id, environment,
  lower(case when settlement ->> 'kind' = 'permit2' then settlement ->> 'owner' else settlement ->> 'from' end),
  case when settlement ->> 'kind' = 'permit2' then 'permit2' else lower(asset) end,
  lower(settlement ->> 'nonce'),
  jsonb_build_object('kind', 'eip3009') || settlement || jsonb_build_object('token', asset),
  valid_before,
  unresolved or settle_attempt > 0 or coalesce(settlement ->> 'kind', 'eip3009') = 'permit2' or coalesce(settlement -> 'signature' ->> 'kind', '') = 'bytes'
    or coalesce(settlement -> 'deployment', 'null') <> 'null',
  case when chain_transaction_id is null or unresolved then 'waiting' else 'included' end,
  case when unresolved then null else chain_transaction_id end,
  settle_attempt,
  case when chain_transaction_id is null then now() end,
  case when unresolved then now() when chain_transaction_id is null then valid_before end,
  created_at
from payments where status = 'settling' and coalesce(settlement ->> 'kind', 'eip3009') <> 'tempo' and settlement is not null;
insert into relay_queues (network, alone, organisation_id, purpose, signer, due_at)
select distinct network, alone, organisation_id, purpose, signer, now() from relays where state = 'waiting';
insert into relay_turns (network, alone, organisation_id, purpose, due_at)
select distinct network, alone, organisation_id, purpose, now() from relay_queues;
update chain_transactions set purpose = 'relays' where purpose = 'payments.settle' and status <> 'final';

-- A settlement's state stands in its relay alone.
alter table payments drop column settle_attempt, drop column chain_transaction_id, drop column unresolved;
create index payments_open_on_tempo on payments (network, id) where status = 'settling' and settlement ->> 'kind' = 'tempo';
