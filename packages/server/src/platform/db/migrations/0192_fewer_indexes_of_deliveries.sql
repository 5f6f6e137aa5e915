-- Indexes that each delivery paid for twice, and whose readers have others. Deliveries of deleted webhooks are found by their age, and pending ones of old
-- events by `webhook_deliveries_due`.
drop index webhook_deliveries_by_webhook;
drop index webhook_deliveries_by_event;
