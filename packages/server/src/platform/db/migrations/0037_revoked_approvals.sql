-- An approval that a failed transfer left behind is set to zero again.

-- When the approval of a transfer that failed is looked at; null: there is none, or nothing is left to do.
alter table transfers add column revoke_at timestamptz;
create index transfers_to_revoke on transfers (revoke_at) where revoke_at is not null;

-- revoke: the contract that an approval named may take nothing any more.
alter table transfer_steps drop constraint transfer_steps_kind_check;
alter table transfer_steps add constraint transfer_steps_kind_check check (kind in ('top-up', 'send', 'approve', 'partner', 'claim', 'refill', 'revoke'));
