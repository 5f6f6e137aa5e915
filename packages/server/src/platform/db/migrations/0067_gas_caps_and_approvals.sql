-- Gas and top-ups count against a cap in the coin that pays them, and what lets a partner's contract take a token is done one transfer at a time.

alter table policy_reservations drop constraint policy_reservations_operation_check;
alter table policy_reservations add constraint policy_reservations_operation_check
  check (operation in ('transfer', 'withdraw', 'legacyWithdraw', 'sweep', 'gas'));

create table approvals (
  transfer_id text primary key references transfers (id),
  seq bigint not null generated always as identity,
  network text not null,
  owner text not null,
  token text not null,
  -- In lower case, like the three others.
  spender text not null,
  -- waiting: none of its steps has a nonce; active: it alone may approve and call; ended: the contract can take nothing of it any more.
  state text not null check (state in ('waiting', 'active', 'ended'))
);
create unique index approvals_active on approvals (network, owner, token, spender) where state = 'active';
create index approvals_waiting on approvals (network, owner, token, spender, seq) where state = 'waiting';

-- Of several that are under way for one contract the oldest goes first; those behind it that have sent already are left as they are.
insert into approvals (transfer_id, network, owner, token, spender, state)
select distinct on (t.from_network, lower(t.from_address), lower(a.to_address), lower(p.to_address))
  t.id, t.from_network, lower(t.from_address), lower(a.to_address), lower(p.to_address), 'active'
from transfers t join transfer_steps a on a.transfer_id = t.id and a.kind = 'approve' join transfer_steps p on p.transfer_id = t.id and p.kind = 'partner'
where (t.ended_at is null and p.done_at is null) or t.revoke_at is not null
order by t.from_network, lower(t.from_address), lower(a.to_address), lower(p.to_address), t.created_at;
