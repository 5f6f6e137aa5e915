-- Whether an incoming row is on hold while its sender is `pending`: no fresh list and no oracle judged the sender. A row that nobody judged
-- yet is on hold, so that is the default. Once false it stays false.
alter table wallet_transactions add column on_hold boolean not null default true;

create index wallet_transactions_held on wallet_transactions (environment, organisation_id, wallet_id)
  where direction = 'in' and status <> 'withdrawn' and aml_status = 'pending' and on_hold;
drop index wallet_transactions_on_hold;

-- One source may have judged them already: they are screened again at once.
update wallet_transactions set aml_due_at = '-infinity' where direction = 'in' and aml_status = 'pending' and aml_due_at < 'infinity';
