-- What the partition that the audit log becomes needs in place of its primary key, which does not begin with the id.
create index concurrently if not exists audit_log_by_sequence on audit_log (organisation_id, sequence);
create unique index concurrently if not exists audit_log_by_id on audit_log (id);
