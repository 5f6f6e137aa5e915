-- What a managed wallet paid for: the URL of the 402, without its query. Null for other transfers, and for those from before.
alter table transfers add column resource text;
