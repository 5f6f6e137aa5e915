-- Approvals have an index for the filter by status, and tokens of a vault one in the order of their list.
create index concurrently if not exists movement_approvals_by_status on movement_approvals (organisation_id, environment, status, id);
create index concurrently if not exists vault_tokens_in_order on vault_tokens (vault_id, id);
drop index concurrently if exists vault_tokens_by_vault;
