-- The contract that has or gets an allowance of a reserved amount, in lower case: what is left of the allowance stays reserved after the nonce is used.
alter table reservations add column spender text;
create index reservations_allowed on reservations (network, owner) where spender is not null;
update reservations r set spender = a.spender from approvals a join transfers t on t.id = a.transfer_id
where r.subject_id = a.transfer_id and r.owner = t.from_address and r.asset = t.from_token and (t.ended_at is null or t.revoke_at is not null);
