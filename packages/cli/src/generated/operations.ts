// Generated from openapi.json by `npm run openapi`; `npm run check` fails when it is out of date.
import type { ApiOperation } from '../operation.ts'

export const apiOperations: readonly ApiOperation[] = [
 {
  "name": "account get",
  "summary": "Get your account, its organisations and its invitations.",
  "method": "GET",
  "path": "/account",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "account invitations accept",
  "summary": "Accept an invitation to an organisation.",
  "method": "POST",
  "path": "/account/invitations/{id}/accept",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the organisation"
   }
  ]
 },
 {
  "name": "account invitations decline",
  "summary": "Decline an invitation to an organisation.",
  "method": "POST",
  "path": "/account/invitations/{id}/decline",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the organisation"
   }
  ]
 },
 {
  "name": "account payment-logs get",
  "summary": "Get one payment log.",
  "method": "GET",
  "path": "/account/payment-logs/{paymentLogId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "paymentLogId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the payment log record"
   }
  ]
 },
 {
  "name": "account payment-logs list",
  "summary": "List payment logs, newest first.",
  "method": "GET",
  "path": "/account/payment-logs",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "route",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this paid route, as a path or a URL"
   },
   {
    "name": "protocol",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments of this protocol; one of x402, mpp"
   },
   {
    "name": "walletId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments to this wallet"
   },
   {
    "name": "apiKeyId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments that this API key verified"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments in this status; one of verified, settling, settled, settlement_failed, voided"
   },
   {
    "name": "chain",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments on this chain"
   },
   {
    "name": "payer",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments of this address"
   },
   {
    "name": "batchId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments that this transaction of the service settles"
   }
  ]
 },
 {
  "name": "account payment-logs summary",
  "summary": "Totals per route and token.",
  "method": "GET",
  "path": "/account/payment-logs/summary",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "route",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this paid route, as a path or a URL"
   },
   {
    "name": "protocol",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments of this protocol; one of x402, mpp"
   },
   {
    "name": "walletId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments to this wallet"
   },
   {
    "name": "apiKeyId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments that this API key verified"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   }
  ]
 },
 {
  "name": "account sessions end",
  "summary": "End one of your sessions at once.",
  "method": "DELETE",
  "path": "/account/sessions/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the sign-in session"
   }
  ]
 },
 {
  "name": "account sessions list",
  "summary": "List the sessions in which you are signed in, newest first.",
  "method": "GET",
  "path": "/account/sessions",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "account usage",
  "summary": "Get the usage of the organisation and the limits of its plan.",
  "method": "GET",
  "path": "/account/usage",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "approvals approve",
  "summary": "Approve a movement that waits.",
  "method": "POST",
  "path": "/approvals/{id}/approve",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the approval"
   }
  ]
 },
 {
  "name": "approvals cancel",
  "summary": "Cancel your own request that waits for an approval.",
  "method": "POST",
  "path": "/approvals/{id}/cancel",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the approval"
   }
  ]
 },
 {
  "name": "approvals get",
  "summary": "Get an approval.",
  "method": "GET",
  "path": "/approvals/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the approval"
   }
  ]
 },
 {
  "name": "approvals list",
  "summary": "List the approvals that spend policies required, newest first.",
  "method": "GET",
  "path": "/approvals",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only approvals in this state; one of waiting, granted, refused, canceled, expired"
   },
   {
    "name": "walletId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "A wallet or child address; a wallet includes its children"
   }
  ]
 },
 {
  "name": "approvals refuse",
  "summary": "Refuse a movement that waits; it fails, and its funds are free again.",
  "method": "POST",
  "path": "/approvals/{id}/refuse",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the approval"
   },
   {
    "name": "reason",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Why; the requester sees it"
   }
  ]
 },
 {
  "name": "billing plan",
  "summary": "Get the plan with all its limits.",
  "method": "GET",
  "path": "/billing/plan",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "billing rebuild-cache",
  "summary": "Recount usage from the records.",
  "method": "POST",
  "path": "/billing/rebuild-cache",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": []
 },
 {
  "name": "billing usage",
  "summary": "Get the usage and the limits of the plan.",
  "method": "GET",
  "path": "/billing/usage",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "chains list",
  "summary": "List the chains that the calling key can use.",
  "method": "GET",
  "path": "/wallet-infra/chains",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "chains tokens",
  "summary": "List the tokens of a chain.",
  "method": "GET",
  "path": "/wallet-infra/chains/{chain}/tokens",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "chain",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Name of a chain. In the test environment, the name of a main network means its test network; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "events get",
  "summary": "Get one event of the last 30 days.",
  "method": "GET",
  "path": "/events/{eventId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "eventId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the event"
   }
  ]
 },
 {
  "name": "events list",
  "summary": "List the events of the last 30 days, newest first.",
  "method": "GET",
  "path": "/events",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "type",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only events of this type"
   }
  ]
 },
 {
  "name": "events listener",
  "summary": "Get the secret that signs the deliveries to listeners of this API key.",
  "method": "POST",
  "path": "/events/listener",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": []
 },
 {
  "name": "events resend",
  "summary": "Send an event again, to every subscribed webhook and listener or to one webhook.",
  "method": "POST",
  "path": "/events/{eventId}/resend",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "eventId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the event"
   },
   {
    "name": "webhookId",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Sends to this webhook alone, whatever it subscribes to"
   }
  ]
 },
 {
  "name": "events trigger",
  "summary": "Send a sample event of a type to every webhook and listener. Test environment only.",
  "method": "POST",
  "path": "/events/trigger",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "type",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The type of the sample event"
   }
  ]
 },
 {
  "name": "events types",
  "summary": "List every event type, each with a sample payload.",
  "method": "GET",
  "path": "/events/types",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "facilitator resources",
  "summary": "List resources that payments declared by the bazaar extension, and routes that organisations made public.",
  "method": "GET",
  "path": "/facilitator/discovery/resources",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "type",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only resources of this type; one of http, mcp"
   },
   {
    "name": "payTo",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only resources that pay this address"
   },
   {
    "name": "scheme",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this payment scheme, such as `exact`"
   },
   {
    "name": "network",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this network, such as `eip155:8453`"
   },
   {
    "name": "extensions",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only resources that declare this extension"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "offset",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "How many items to skip"
   }
  ]
 },
 {
  "name": "facilitator settle",
  "summary": "Settle a payment for any x402 server, and wait for the outcome.",
  "method": "POST",
  "path": "/facilitator/settle",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "x402Version",
    "in": "body",
    "type": "number",
    "required": true,
    "about": "Version of x402: 1 or 2"
   },
   {
    "name": "paymentPayload",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "The payment payload of the client, as x402 defines it"
   },
   {
    "name": "paymentRequirements",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "The requirements that the payload must meet, as x402 defines them"
   }
  ]
 },
 {
  "name": "facilitator supported",
  "summary": "List the payment kinds that the facilitator supports.",
  "method": "GET",
  "path": "/facilitator/supported",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "facilitator verify",
  "summary": "Verify a payment for any x402 server, and record it, once.",
  "method": "POST",
  "path": "/facilitator/verify",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "x402Version",
    "in": "body",
    "type": "number",
    "required": true,
    "about": "Version of x402: 1 or 2"
   },
   {
    "name": "paymentPayload",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "The payment payload of the client, as x402 defines it"
   },
   {
    "name": "paymentRequirements",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "The requirements that the payload must meet, as x402 defines them"
   }
  ]
 },
 {
  "name": "organisations api-keys create",
  "summary": "Create an API key, which only this response shows.",
  "method": "POST",
  "path": "/organisations/current/api-keys",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "name",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "A name of your own"
   },
   {
    "name": "scopes",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "None named: all, or those of the calling key"
   },
   {
    "name": "expiresAt",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "In the future; no end, or that of the calling key, by default"
   },
   {
    "name": "environment",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The environment that the key is for. A test key creates only test keys; one of test, live"
   }
  ]
 },
 {
  "name": "organisations api-keys create-in",
  "summary": "Create an API key of the caller's environment, which only this response shows.",
  "method": "POST",
  "path": "/organisations/{orgId}/api-keys",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "orgId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the organisation"
   },
   {
    "name": "name",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "A name of your own"
   },
   {
    "name": "scopes",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "None named: all, or those of the calling key"
   },
   {
    "name": "expiresAt",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "In the future; no end, or that of the calling key, by default"
   }
  ]
 },
 {
  "name": "organisations api-keys list",
  "summary": "List API keys, newest first, without their values.",
  "method": "GET",
  "path": "/organisations/current/api-keys",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "organisations api-keys list-in",
  "summary": "List API keys, newest first, without their values.",
  "method": "GET",
  "path": "/organisations/{orgId}/api-keys",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "orgId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the organisation"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "organisations api-keys revoke",
  "summary": "Revoke an API key permanently, at once.",
  "method": "DELETE",
  "path": "/organisations/current/api-keys/{keyId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "keyId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the API key"
   },
   {
    "name": "cascade",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Whether the keys that it created, and theirs, end too; one of true, false"
   }
  ]
 },
 {
  "name": "organisations api-keys revoke-in",
  "summary": "Revoke an API key permanently, at once.",
  "method": "DELETE",
  "path": "/organisations/{orgId}/api-keys/{keyId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "orgId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the organisation"
   },
   {
    "name": "keyId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the API key"
   },
   {
    "name": "cascade",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Whether the keys that it created, and theirs, end too; one of true, false"
   }
  ]
 },
 {
  "name": "organisations audit-log",
  "summary": "List the hash-chained audit log, newest first.",
  "method": "GET",
  "path": "/organisations/current/audit-log",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "action",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this action, such as `organisations.apiKeys.create`"
   },
   {
    "name": "target",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "The id of the changed object"
   },
   {
    "name": "actor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "The API key or the account that made the change"
   }
  ]
 },
 {
  "name": "organisations create",
  "summary": "Create an organisation, with one test key that only this response shows.",
  "method": "POST",
  "path": "/organisations",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "name",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Name of the organisation"
   },
   {
    "name": "type",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Type of the organisation; one of personal, team, enterprise"
   }
  ]
 },
 {
  "name": "organisations current",
  "summary": "Get the organisation of the calling key.",
  "method": "GET",
  "path": "/organisations/current",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "organisations delete",
  "summary": "Delete the organisation.",
  "method": "DELETE",
  "path": "/organisations/{orgId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "orgId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the organisation"
   }
  ]
 },
 {
  "name": "organisations members add",
  "summary": "Add a member by account or by e-mail address.",
  "method": "POST",
  "path": "/organisations/current/members",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "accountId",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The account to invite, in place of `email`"
   },
   {
    "name": "email",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The e-mail address to invite"
   },
   {
    "name": "role",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Role of the member; one of owner, admin, member, viewer"
   }
  ]
 },
 {
  "name": "organisations members list",
  "summary": "List the members, newest first.",
  "method": "GET",
  "path": "/organisations/current/members",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "organisations members remove",
  "summary": "Remove a member.",
  "method": "DELETE",
  "path": "/organisations/current/members/{accountId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "accountId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the account"
   }
  ]
 },
 {
  "name": "organisations members update",
  "summary": "Give a member another role.",
  "method": "PATCH",
  "path": "/organisations/current/members/{accountId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "accountId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the account"
   },
   {
    "name": "role",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "New role of the member; one of owner, admin, member, viewer"
   }
  ]
 },
 {
  "name": "organisations update",
  "summary": "Rename the organisation.",
  "method": "PATCH",
  "path": "/organisations/current",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "name",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "New name of the organisation"
   }
  ]
 },
 {
  "name": "payments challenge",
  "summary": "Create the challenge for an unpaid request.",
  "method": "POST",
  "path": "/payments/challenge",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "walletId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The wallet that is to be paid"
   },
   {
    "name": "otherWalletIds",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Wallets on other networks that may be paid instead: the 402 offers all, at most four with MPP. Send the same list to challenge and verify"
   },
   {
    "name": "resource",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "URL of the paid route"
   },
   {
    "name": "hostname",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Host that sells, in place of `resource`"
   },
   {
    "name": "price",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Price in US dollars"
   },
   {
    "name": "method",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The paid route’s method, where its price is the same for every request. Money sent for an MPP challenge of a `resource` then pays at the challenge’s price until it expires, even if the price has risen"
   },
   {
    "name": "description",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "What is sold, for the payer to read"
   },
   {
    "name": "mimeType",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Media type of the sold response"
   },
   {
    "name": "intent",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "`charge` for one request, `session` for a pass for many requests; one of charge, session"
   },
   {
    "name": "acceptX402",
    "in": "body",
    "type": "boolean",
    "required": false,
    "about": "Whether x402 is offered"
   },
   {
    "name": "acceptMPP",
    "in": "body",
    "type": "boolean",
    "required": false,
    "about": "Whether MPP is offered"
   },
   {
    "name": "signOffers",
    "in": "body",
    "type": "boolean",
    "required": false,
    "about": "Whether the x402 challenge carries signed offers (extension offer-receipt), by which a payer can prove what was requested. They add about 600 bytes each to the header"
   },
   {
    "name": "digest",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Content-Digest of the paid request’s body. A challenge that carries one is paid only by a request with the same body"
   },
   {
    "name": "credentialHeader",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Header in which an MPP client must send its credential; Payment-Authorization where the route already uses Authorization; one of Authorization, Payment-Authorization"
   },
   {
    "name": "ip",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "IP address of your caller, to limit its challenges to 20 a minute. Not with count, which is for many callers"
   },
   {
    "name": "count",
    "in": "body",
    "type": "number",
    "required": false,
    "about": "How many challenges to make. With it the response is a list; each challenge is for one caller"
   },
   {
    "name": "compact",
    "in": "body",
    "type": "boolean",
    "required": false,
    "about": "With count: common parts of the challenges are returned once, and mpp is a list. An x402 challenge has nothing specific to one payer"
   }
  ]
 },
 {
  "name": "payments delivered",
  "summary": "Report that the responses of payments were sent to their payers.",
  "method": "POST",
  "path": "/payments/delivered",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "paymentIds",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "Payments whose responses have been sent"
   }
  ]
 },
 {
  "name": "payments get",
  "summary": "Get one payment.",
  "method": "GET",
  "path": "/payments/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the payment"
   }
  ]
 },
 {
  "name": "payments logs get",
  "summary": "Get one payment log.",
  "method": "GET",
  "path": "/payments/logs/{paymentLogId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "paymentLogId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the payment log record"
   }
  ]
 },
 {
  "name": "payments logs list",
  "summary": "List payment logs, newest first.",
  "method": "GET",
  "path": "/payments/logs",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "route",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this paid route, as a path or a URL"
   },
   {
    "name": "protocol",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments of this protocol; one of x402, mpp"
   },
   {
    "name": "walletId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments to this wallet"
   },
   {
    "name": "apiKeyId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments that this API key verified"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments in this status; one of verified, settling, settled, settlement_failed, voided"
   },
   {
    "name": "chain",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments on this chain"
   },
   {
    "name": "payer",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments of this address"
   },
   {
    "name": "batchId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments that this transaction of the service settles"
   }
  ]
 },
 {
  "name": "payments logs summary",
  "summary": "Totals per route and token.",
  "method": "GET",
  "path": "/payments/logs/summary",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "route",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this paid route, as a path or a URL"
   },
   {
    "name": "protocol",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments of this protocol; one of x402, mpp"
   },
   {
    "name": "walletId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments to this wallet"
   },
   {
    "name": "apiKeyId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only payments that this API key verified"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   }
  ]
 },
 {
  "name": "payments redeem",
  "summary": "Request the right to serve a payment that was settled and never delivered.",
  "method": "POST",
  "path": "/payments/redeem",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "protocol",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The protocol of the credential; one of x402, mpp"
   },
   {
    "name": "credential",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The header value with which the payer paid, as it arrived. In the test environment also `stub_payment_accepted`"
   },
   {
    "name": "resource",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "URL of the paid route"
   },
   {
    "name": "method",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "HTTP method of the paid request"
   },
   {
    "name": "digest",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Content-Digest of the paid request’s body. A challenge that carries one is paid only by a request with the same body"
   },
   {
    "name": "rerun",
    "in": "body",
    "type": "boolean",
    "required": false,
    "about": "Whether the handler has to run again. Allowed for GET and HEAD, twice for a payment. False while the response of its first run is kept"
   },
   {
    "name": "settlementToken",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The token from verify or redeem, if your process still has the response of the handler. With it the redemption skips the grace period"
   },
   {
    "name": "paymentId",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "With settlementToken, on the connection on which the credential came first. The caller verified the payment, so the payer proves nothing more"
   },
   {
    "name": "signature",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "The payer’s signature (EIP-191) over the payment, the route and the time, at most 5 minutes old, where the credential shows nothing that the chain does not"
   }
  ]
 },
 {
  "name": "payments redeemed",
  "summary": "Finish a redemption, right before you send the response.",
  "method": "POST",
  "path": "/payments/{id}/redeemed",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the payment"
   },
   {
    "name": "redemptionToken",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The token that `payments.redeem` returned"
   }
  ]
 },
 {
  "name": "payments refund",
  "summary": "Pay a settled payment back to its payer.",
  "method": "POST",
  "path": "/payments/{id}/refund",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the payment"
   },
   {
    "name": "fromWalletId",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Managed wallet or child address that pays, on the payment’s network. Left out: the wallet that was paid, where it is one"
   },
   {
    "name": "amount",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Decimal amount in whole tokens of the payment. Left out: all that was not refunded yet"
   },
   {
    "name": "reason",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Your own text; the response and the event include it"
   }
  ]
 },
 {
  "name": "payments refunds list",
  "summary": "List the refunds of a payment, newest first.",
  "method": "GET",
  "path": "/payments/{id}/refunds",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the payment"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "payments release",
  "summary": "Void a verified payment that you will not settle.",
  "method": "POST",
  "path": "/payments/{id}/release",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the payment"
   },
   {
    "name": "settlementToken",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The token that `payments.verify` returned"
   }
  ]
 },
 {
  "name": "payments settle",
  "summary": "Settle a verified payment on chain, and wait for the outcome.",
  "method": "POST",
  "path": "/payments/settle",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "paymentId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Identifies the payment"
   },
   {
    "name": "settlementToken",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The token that `payments.verify` returned"
   }
  ]
 },
 {
  "name": "payments statistics",
  "summary": "Count payments per interval of time, with amounts, latency and reasons of failures.",
  "method": "GET",
  "path": "/payments/statistics",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": true,
    "about": "Start of the period (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": true,
    "about": "End of the period (ISO 8601), exclusive"
   },
   {
    "name": "interval",
    "in": "query",
    "type": "text",
    "required": true,
    "about": "Length of one interval; at most 200 fit between `from` and `to`. For hours and days, `from` is rounded down and `to` is rounded up to a quarter of an hour; one of minute, hour, day"
   },
   {
    "name": "route",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only `intervals` of this paid route"
   }
  ]
 },
 {
  "name": "payments undelivered",
  "summary": "Undo the end of a redemption whose response was not sent.",
  "method": "POST",
  "path": "/payments/{id}/undelivered",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the payment"
   },
   {
    "name": "redemptionToken",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The token that `payments.redeem` returned"
   }
  ]
 },
 {
  "name": "payments verify",
  "summary": "Verify a payment credential and record the payment, once.",
  "method": "POST",
  "path": "/payments/verify",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "protocol",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The protocol of the credential; one of x402, mpp"
   },
   {
    "name": "credential",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The header value with which the payer paid, as it arrived. In the test environment also `stub_payment_accepted`"
   },
   {
    "name": "price",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Price in US dollars"
   },
   {
    "name": "currency",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The currency of `price`"
   },
   {
    "name": "walletId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The wallet that is to be paid, as in the challenge"
   },
   {
    "name": "otherWalletIds",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Wallets on other networks that may be paid instead: the 402 offers all, at most four with MPP. Send the same list to challenge and verify"
   },
   {
    "name": "resource",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The paid route’s URL. An MPP challenge for a resource is valid only for it, including its query"
   },
   {
    "name": "method",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "HTTP method of the paid request"
   },
   {
    "name": "description",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "What is sold; the payment record shows it"
   },
   {
    "name": "network",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "CAIP-2 id of the only network on which the payment is accepted"
   },
   {
    "name": "digest",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Content-Digest of the paid request’s body. A challenge that carries one is paid only by a request with the same body"
   },
   {
    "name": "reportsDelivery",
    "in": "body",
    "type": "boolean",
    "required": false,
    "about": "Whether you report with payments.delivered that the response was sent. If not, the payment counts as delivered when it is settled"
   }
  ]
 },
 {
  "name": "registry routes get",
  "summary": "Get one paid route.",
  "method": "GET",
  "path": "/registry/routes/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the registry route"
   }
  ]
 },
 {
  "name": "registry routes list",
  "summary": "List your reported routes, newest first.",
  "method": "GET",
  "path": "/registry/routes",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "host",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this host"
   },
   {
    "name": "protocol",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Routes that were ever paid for in this protocol; one of x402, mpp"
   },
   {
    "name": "maxAmount",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only up to this price, in US dollars"
   },
   {
    "name": "q",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Part of “METHOD host/route”, in any case"
   }
  ]
 },
 {
  "name": "registry routes update",
  "summary": "Make a paid route public, or private again.",
  "method": "PATCH",
  "path": "/registry/routes/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the registry route"
   },
   {
    "name": "isPublic",
    "in": "body",
    "type": "boolean",
    "required": true,
    "about": "Whether other organisations find the route"
   }
  ]
 },
 {
  "name": "registry snapshots create",
  "summary": "Report a paid route. The middlewares do this automatically.",
  "method": "POST",
  "path": "/registry/snapshots",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "host",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Host of the route, with a port other than that of https"
   },
   {
    "name": "method",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "HTTP method of the route"
   },
   {
    "name": "routePattern",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "A router’s pattern or a path. What looks like an identifier becomes {id}; the query is left out"
   },
   {
    "name": "headers",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Header fields that the route reads"
   },
   {
    "name": "queryParams",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Query parameters of the route"
   },
   {
    "name": "bodyParams",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Members of the body of the route"
   },
   {
    "name": "bodyContentType",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Media type of the request body"
   },
   {
    "name": "amount",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Price in US dollars"
   },
   {
    "name": "protocol",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Protocol in which it was paid; one of x402, mpp"
   },
   {
    "name": "paymentLogId",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "The payment log record of the payment that was observed"
   }
  ]
 },
 {
  "name": "requests get",
  "summary": "Get a request by the `X-Request-Id` of its response.",
  "method": "GET",
  "path": "/requests/{requestId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "requestId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the request"
   }
  ]
 },
 {
  "name": "requests list",
  "summary": "List the last requests of the organisation, newest first.",
  "method": "GET",
  "path": "/requests",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "method",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this HTTP method; one of GET, POST, PUT, PATCH, DELETE"
   },
   {
    "name": "route",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Such as `/payments/{id}`"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "A status, or a class of them such as `4xx`"
   },
   {
    "name": "apiKeyId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only requests with this API key"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   }
  ]
 },
 {
  "name": "sessions create",
  "summary": "Open the session of a payment, with its vault.",
  "method": "POST",
  "path": "/sessions",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "paymentId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Identifies the payment"
   },
   {
    "name": "expiresIn",
    "in": "body",
    "type": "number",
    "required": false,
    "about": "Seconds. Without effect where the payment has a session already"
   }
  ]
 },
 {
  "name": "sessions get",
  "summary": "Get one session.",
  "method": "GET",
  "path": "/sessions/{sessionId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "sessionId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the payment session"
   }
  ]
 },
 {
  "name": "sessions list",
  "summary": "List sessions, newest first.",
  "method": "GET",
  "path": "/sessions",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "sessions verify",
  "summary": "Check whether a session token grants access to a route.",
  "method": "POST",
  "path": "/sessions/verify",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "sessionToken",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "What the payer sent in X-Service-Session-Id"
   },
   {
    "name": "host",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The host of the requested route"
   },
   {
    "name": "walletId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The wallet that the route sells for"
   },
   {
    "name": "otherWalletIds",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Others that the route sells for as well"
   }
  ]
 },
 {
  "name": "test clock advance",
  "summary": "Advance the test environment in time.",
  "method": "POST",
  "path": "/test/clock",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "advance",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "Seconds or a duration such as `25h`, at most 366 days"
   }
  ]
 },
 {
  "name": "test deposits create",
  "summary": "Send test money to a wallet of the test environment.",
  "method": "POST",
  "path": "/test/deposits",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "walletId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The wallet or child address that receives the money"
   },
   {
    "name": "token",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Symbol of the token"
   },
   {
    "name": "amount",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Decimal amount in whole tokens, at most 10000"
   }
  ]
 },
 {
  "name": "test payments create",
  "summary": "Create a payment to a test wallet, paid by the faucet.",
  "method": "POST",
  "path": "/test/payments",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "walletId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The wallet that is paid"
   },
   {
    "name": "price",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Decimal US dollars, at most 1"
   }
  ]
 },
 {
  "name": "transfers create",
  "summary": "Send money from a managed wallet or child address.",
  "method": "POST",
  "path": "/wallet-infra/transfer",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "fromWalletId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The master wallet or child address that pays"
   },
   {
    "name": "fromWalletType",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Kind of the wallet; one of master, child"
   },
   {
    "name": "fromChain",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The wallet's own chain if omitted; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "fromToken",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Symbol of the token that is sent"
   },
   {
    "name": "toAddress",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Address of the recipient"
   },
   {
    "name": "toChain",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The chain on which it arrives; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "toToken",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Symbol of the token that arrives"
   },
   {
    "name": "amount",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Decimal amount in whole tokens"
   },
   {
    "name": "minToAmount",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Least amount that must arrive, in whole tokens of toToken; less is `price-too-low`. Default: 98 % of a dollar for a dollar. A swap between coin and token needs it or quoteId"
   },
   {
    "name": "quoteId",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "A quote for this transfer, valid for 60 seconds and for one transfer: at least its minToAmount arrives"
   },
   {
    "name": "reference",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Your own reference; it is returned and used for nothing else"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Your own data, at most 16 KiB of JSON and 50 members. Responses contain it, and lists find it"
   }
  ]
 },
 {
  "name": "transfers get",
  "summary": "Get a transfer.",
  "method": "GET",
  "path": "/wallet-infra/transfers/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the wallet transaction"
   }
  ]
 },
 {
  "name": "transfers list",
  "summary": "List the transfers, newest first.",
  "method": "GET",
  "path": "/wallet-infra/transfers",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "fromWalletId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only transfers from this wallet"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only transfers in this state; one of pending, confirmed, failed"
   },
   {
    "name": "metadata",
    "in": "query",
    "type": "json",
    "required": false,
    "about": "One member of the metadata and its value: a text, a number or a boolean. In a URL it is `metadata.<key>=<value>`"
   }
  ]
 },
 {
  "name": "transfers quote",
  "summary": "Quote the cost, the route and the least amount that would arrive; nothing moves.",
  "method": "POST",
  "path": "/wallet-infra/transfer/quote",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "fromWalletId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The master wallet or child address that pays"
   },
   {
    "name": "fromWalletType",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Kind of the wallet; one of master, child"
   },
   {
    "name": "fromChain",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The wallet's own chain if omitted; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "fromToken",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Symbol of the token that is sent"
   },
   {
    "name": "toAddress",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Address of the recipient"
   },
   {
    "name": "toChain",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The chain on which it arrives; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "toToken",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Symbol of the token that arrives"
   },
   {
    "name": "amount",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Decimal amount in whole tokens"
   },
   {
    "name": "minToAmount",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Least amount that must arrive, in whole tokens of toToken; less is `price-too-low`. Default: 98 % of a dollar for a dollar. A swap between coin and token needs it or quoteId"
   }
  ]
 },
 {
  "name": "vaults create",
  "summary": "Make a vault.",
  "method": "POST",
  "path": "/vaults",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "description",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "A description of your own"
   },
   {
    "name": "ttl",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Time to live, such as `30m`, `24h` or `7d`; a vault’s own `ttl` is the instant of its end. The plan has a default and a maximum"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Your own data, at most 16 KiB of JSON and 50 members. Responses contain it"
   }
  ]
 },
 {
  "name": "vaults delete",
  "summary": "Delete a vault with its contents.",
  "method": "DELETE",
  "path": "/vaults/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   }
  ]
 },
 {
  "name": "vaults documents add",
  "summary": "Put a JSON document into a vault.",
  "method": "POST",
  "path": "/vaults/{id}/documents",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "name",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Name of the document"
   },
   {
    "name": "data",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "The JSON object to store, at most 1 MiB"
   }
  ]
 },
 {
  "name": "vaults documents get",
  "summary": "Get a document with its data.",
  "method": "GET",
  "path": "/vaults/{id}/documents/{docId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "docId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault document"
   }
  ]
 },
 {
  "name": "vaults emit",
  "summary": "Emit an event of your own to all who watch the vault.",
  "method": "POST",
  "path": "/vaults/{id}/emit",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "event",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Name of the event. Names of the service, such as `vault.sealed`, are reserved"
   },
   {
    "name": "payload",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Content of the event, at most 16 KiB of JSON"
   }
  ]
 },
 {
  "name": "vaults extend",
  "summary": "Give a vault a new end, counted from now.",
  "method": "POST",
  "path": "/vaults/{id}/extend",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "ttl",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "New time to live, counted from now, such as `24h`"
   }
  ]
 },
 {
  "name": "vaults files delete",
  "summary": "Delete a file.",
  "method": "DELETE",
  "path": "/vaults/{id}/files/{fileId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "fileId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault file"
   }
  ]
 },
 {
  "name": "vaults get",
  "summary": "Get a vault with its contents.",
  "method": "GET",
  "path": "/vaults/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   }
  ]
 },
 {
  "name": "vaults list",
  "summary": "List vaults, newest first.",
  "method": "GET",
  "path": "/vaults",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only vaults in this state; one of active, sealed, persisted"
   }
  ]
 },
 {
  "name": "vaults persist",
  "summary": "Keep a vault until it is deleted.",
  "method": "POST",
  "path": "/vaults/{id}/persist",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   }
  ]
 },
 {
  "name": "vaults proof",
  "summary": "Get the proof of a sealed vault, or of one item in it.",
  "method": "GET",
  "path": "/vaults/{id}/proof",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "item",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "A document or file: its own proof of inclusion, without the others"
   }
  ]
 },
 {
  "name": "vaults quota",
  "summary": "Get the usage of vaults and the limits of the plan.",
  "method": "GET",
  "path": "/vaults/quota",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "vaults seal",
  "summary": "Make a vault permanently read-only and sign its contents.",
  "method": "POST",
  "path": "/vaults/{id}/seal",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "summary",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "A summary that is sealed with the vault"
   }
  ]
 },
 {
  "name": "vaults tokens create",
  "summary": "Make a token that reads one vault, its files and its events, and nothing else.",
  "method": "POST",
  "path": "/vaults/{id}/tokens",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "kind",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "A ticket opens one stream of events, in an address, within 60 seconds: for browsers, which send no header; one of token, ticket"
   },
   {
    "name": "expiresIn",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Seconds or a duration such as `1h`; an hour by default. A ticket has its own"
   }
  ]
 },
 {
  "name": "vaults tokens list",
  "summary": "List a vault's valid tokens and tickets, newest first, without their text.",
  "method": "GET",
  "path": "/vaults/{id}/tokens",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "vaults tokens revoke",
  "summary": "Revoke a token or ticket of a vault. Its streams and links end too.",
  "method": "DELETE",
  "path": "/vaults/{id}/tokens/{tokenId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "tokenId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault token"
   }
  ]
 },
 {
  "name": "vaults tokens revoke-all",
  "summary": "Revoke all tokens and tickets of a vault. Their streams and links end too.",
  "method": "DELETE",
  "path": "/vaults/{id}/tokens",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   }
  ]
 },
 {
  "name": "vaults update",
  "summary": "Change the description and metadata of a vault.",
  "method": "PATCH",
  "path": "/vaults/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the vault"
   },
   {
    "name": "description",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "A new description; null removes it"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Replaces the existing metadata"
   }
  ]
 },
 {
  "name": "wallets byo balances",
  "summary": "Get the balances of a wallet of your own.",
  "method": "GET",
  "path": "/wallet-infra/byo-wallets/{id}/balances",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the BYO wallet"
   }
  ]
 },
 {
  "name": "wallets byo create",
  "summary": "Register a wallet that you own.",
  "method": "POST",
  "path": "/wallet-infra/byo-wallets",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "address",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Address of your wallet (EVM)"
   },
   {
    "name": "chain",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Name of a chain. In the test environment, the name of a main network means its test network; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "supportedTokens",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "Symbols of the tokens that it accepts"
   },
   {
    "name": "name",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "A name of your own"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Your own data, at most 16 KiB of JSON and 50 members. Responses contain it"
   }
  ]
 },
 {
  "name": "wallets byo delete",
  "summary": "Stop watching a wallet that you own.",
  "method": "DELETE",
  "path": "/wallet-infra/byo-wallets/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the BYO wallet"
   }
  ]
 },
 {
  "name": "wallets byo get",
  "summary": "Get one wallet that you own.",
  "method": "GET",
  "path": "/wallet-infra/byo-wallets/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the BYO wallet"
   }
  ]
 },
 {
  "name": "wallets byo list",
  "summary": "List the wallets that you own, newest first.",
  "method": "GET",
  "path": "/wallet-infra/byo-wallets",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "wallets byo transactions",
  "summary": "List the transactions of a wallet that you own, newest first.",
  "method": "GET",
  "path": "/wallet-infra/byo-wallets/{id}/transactions",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the BYO wallet"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only in this state; one of pending, confirmed, withdrawn"
   },
   {
    "name": "direction",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Incoming or outgoing only; one of in, out"
   },
   {
    "name": "chain",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only on this chain; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "token",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this token, by symbol"
   },
   {
    "name": "onHold",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only deposits on hold, wholly or in part"
   }
  ]
 },
 {
  "name": "wallets byo update",
  "summary": "Change the name and metadata of a wallet that you own.",
  "method": "PATCH",
  "path": "/wallet-infra/byo-wallets/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the BYO wallet"
   },
   {
    "name": "name",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "A new name; null removes it"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Replaces all existing metadata"
   }
  ]
 },
 {
  "name": "wallets children balances",
  "summary": "Get the balances of a child address.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}/child-addresses/{cad}/balances",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "cad",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the child address"
   },
   {
    "name": "spendable",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Whether to add the `parts` of each balance; one of true, false"
   }
  ]
 },
 {
  "name": "wallets children create",
  "summary": "Derive the next child address of a managed wallet, or several.",
  "method": "POST",
  "path": "/wallet-infra/master-wallets/{id}/child-addresses",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "name",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "A name of your own"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Your own data, at most 16 KiB of JSON and 50 members. Responses contain it"
   },
   {
    "name": "count",
    "in": "body",
    "type": "number",
    "required": false,
    "about": "Derive this many at once, at most 1000; the response is then an array, by index. Each has the same name and metadata"
   }
  ]
 },
 {
  "name": "wallets children get",
  "summary": "Get one child address.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}/child-addresses/{cad}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "cad",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the child address"
   }
  ]
 },
 {
  "name": "wallets children list",
  "summary": "List the child addresses of a managed wallet, newest first.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}/child-addresses",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "wallets children transactions",
  "summary": "List the transactions of a child address, newest first.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}/child-addresses/{cad}/transactions",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "cad",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the child address"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only in this state; one of pending, confirmed, withdrawn"
   },
   {
    "name": "direction",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Incoming or outgoing only; one of in, out"
   },
   {
    "name": "chain",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only on this chain; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "token",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this token, by symbol"
   },
   {
    "name": "onHold",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only deposits on hold, wholly or in part"
   }
  ]
 },
 {
  "name": "wallets children update",
  "summary": "Change the name and metadata of a child address.",
  "method": "PATCH",
  "path": "/wallet-infra/master-wallets/{id}/child-addresses/{cad}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "cad",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the child address"
   },
   {
    "name": "name",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "A new name; null removes it"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Replaces all existing metadata"
   }
  ]
 },
 {
  "name": "wallets deposits rescan",
  "summary": "Rescan one transaction for deposits.",
  "method": "POST",
  "path": "/wallet-infra/deposits/rescan",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "chain",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Name of a chain. In the test environment, the name of a main network means its test network; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "txHash",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Hash of the transaction"
   }
  ]
 },
 {
  "name": "wallets holds summary",
  "summary": "Sum the money on hold at all managed wallets.",
  "method": "GET",
  "path": "/wallet-infra/holds",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "wallets legacy balance",
  "summary": "Get the balance of the legacy wallet, by coin.",
  "method": "GET",
  "path": "/wallets/balance",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "coin",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this coin; every coin of the environment if omitted; one of USDC_E, USDC, USDT"
   }
  ]
 },
 {
  "name": "wallets legacy create",
  "summary": "Create or get the organisation's legacy wallet.",
  "method": "POST",
  "path": "/wallets",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "coin",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "USDC_E is on tempo, USDC and USDT are on ethereum; one of USDC_E, USDC, USDT"
   }
  ]
 },
 {
  "name": "wallets legacy get",
  "summary": "Get the organisation's legacy wallet, with the coin that it was created for.",
  "method": "GET",
  "path": "/wallets/me",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": []
 },
 {
  "name": "wallets legacy history",
  "summary": "List the transactions of the legacy wallet, newest first.",
  "method": "GET",
  "path": "/wallets/history",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only in this state; one of pending, confirmed, withdrawn"
   },
   {
    "name": "direction",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Incoming or outgoing only; one of in, out"
   },
   {
    "name": "chain",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only on this chain; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "token",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this token, by symbol"
   },
   {
    "name": "onHold",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only deposits on hold, wholly or in part"
   }
  ]
 },
 {
  "name": "wallets legacy withdraw",
  "summary": "Send a coin of the legacy wallet to an address.",
  "method": "POST",
  "path": "/wallets/withdraw",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "to",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Address of the recipient"
   },
   {
    "name": "amount",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Decimal amount in whole coins, more than zero"
   },
   {
    "name": "coin",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The coin to send; one of USDC_E, USDC, USDT"
   }
  ]
 },
 {
  "name": "wallets master balances",
  "summary": "Get the balances of a managed wallet.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}/balances",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "spendable",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Whether to add the `parts` of each balance; one of true, false"
   }
  ]
 },
 {
  "name": "wallets master create",
  "summary": "Create a wallet whose key the service holds.",
  "method": "POST",
  "path": "/wallet-infra/master-wallets",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "name",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "A name of your own"
   },
   {
    "name": "chain",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The chain of the wallet; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "supportedTokens",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "Symbols of the tokens that it accepts"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Your own data, at most 16 KiB of JSON and 50 members. Responses contain it"
   }
  ]
 },
 {
  "name": "wallets master get",
  "summary": "Get one managed wallet.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   }
  ]
 },
 {
  "name": "wallets master list",
  "summary": "List the managed wallets, newest first.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "childAddressId",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only the wallet of this child address"
   }
  ]
 },
 {
  "name": "wallets master policy get",
  "summary": "Get the spend policy of a managed wallet and its children.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}/policy",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   }
  ]
 },
 {
  "name": "wallets master policy set",
  "summary": "Set or tighten the spend policy of a managed wallet and its children.",
  "method": "PUT",
  "path": "/wallet-infra/master-wallets/{id}/policy",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "operations",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "What may move money out of the wallet, by operation. An operation that is not named may not"
   },
   {
    "name": "tokens",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "What may leave, by token symbol. A token that is not named may not"
   }
  ]
 },
 {
  "name": "wallets master restore",
  "summary": "Restore a retired wallet.",
  "method": "POST",
  "path": "/wallet-infra/master-wallets/{id}/restore",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   }
  ]
 },
 {
  "name": "wallets master retire",
  "summary": "Retire a managed wallet without a balance or open transfers.",
  "method": "DELETE",
  "path": "/wallet-infra/master-wallets/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   }
  ]
 },
 {
  "name": "wallets master sweep",
  "summary": "Move the balances of a token from the child addresses to their master wallet.",
  "method": "POST",
  "path": "/wallet-infra/master-wallets/{id}/sweep",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "token",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Symbol of the token that is swept"
   },
   {
    "name": "childAddressIds",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "If omitted: all children of the wallet"
   },
   {
    "name": "minAmount",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Children with a lower balance are skipped"
   }
  ]
 },
 {
  "name": "wallets master transactions",
  "summary": "List the transactions of a managed wallet, newest first.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}/transactions",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only in this state; one of pending, confirmed, withdrawn"
   },
   {
    "name": "direction",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Incoming or outgoing only; one of in, out"
   },
   {
    "name": "chain",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only on this chain; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "token",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only this token, by symbol"
   },
   {
    "name": "onHold",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only deposits on hold, wholly or in part"
   }
  ]
 },
 {
  "name": "wallets master update",
  "summary": "Change the name, the metadata and the automatic sweep of a managed wallet.",
  "method": "PATCH",
  "path": "/wallet-infra/master-wallets/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "name",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "A new name; null removes it"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Replaces all existing metadata"
   },
   {
    "name": "autoSweep",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "The automatic sweep; null turns it off"
   }
  ]
 },
 {
  "name": "wallets pay",
  "summary": "Pay a 402 from a managed wallet or child address.",
  "method": "POST",
  "path": "/wallet-infra/pay",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "fromWalletId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The master wallet or child address that pays"
   },
   {
    "name": "challenge",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "The 402 as it was received; instead of `url`"
   },
   {
    "name": "url",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The URL to fetch and, if it returns 402, to pay; instead of `challenge`. No redirect is followed"
   },
   {
    "name": "method",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "With `url`. Default GET; one of GET, POST, PUT, PATCH, DELETE"
   },
   {
    "name": "headers",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "With `url`: the header fields to send. The service adds none of its own credentials"
   },
   {
    "name": "body",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "With `url` and another method than GET: the body"
   },
   {
    "name": "bodyEncoding",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "How `body` is written: as text (default), which is sent as UTF-8, or in base64; one of text, base64"
   },
   {
    "name": "maxAmount",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Most that is paid, in whole tokens. Offers above it are refused"
   },
   {
    "name": "chains",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "The chains that may be paid on. If omitted: all that the key and the deployment have"
   },
   {
    "name": "tokens",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Symbols of the tokens that may be paid. If omitted: all that pay by signature"
   },
   {
    "name": "prefer",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The protocol to prefer. Otherwise the cheapest offer, then x402; one of x402, mpp"
   },
   {
    "name": "approvedPaymentId",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "A payment that returned 202 and was approved since: this fresh 402 is paid if it is for the same recipient, token and chain and for at most the approved amount"
   },
   {
    "name": "reference",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Your own reference; it is returned and used for nothing else"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Your own data, at most 16 KiB of JSON and 50 members. Responses contain it, and lists find it"
   }
  ]
 },
 {
  "name": "wallets sweeps get",
  "summary": "Get one sweep, with the amount and state of each child.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}/sweeps/{sweepId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "sweepId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the sweep"
   }
  ]
 },
 {
  "name": "wallets sweeps list",
  "summary": "List the sweeps of a managed wallet, newest first.",
  "method": "GET",
  "path": "/wallet-infra/master-wallets/{id}/sweeps",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the master wallet"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "webhooks attempts list",
  "summary": "List attempts to deliver, newest first.",
  "method": "GET",
  "path": "/webhooks/{webhookId}/attempts",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "webhookId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the webhook"
   },
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only attempts with this outcome; one of succeeded, failed"
   }
  ]
 },
 {
  "name": "webhooks create",
  "summary": "Create a webhook.",
  "method": "POST",
  "path": "/webhooks",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "url",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "HTTPS URL that receives the events; it must be public"
   },
   {
    "name": "events",
    "in": "body",
    "type": "json",
    "required": true,
    "about": "Event types to receive; `*` for all, also later ones"
   }
  ]
 },
 {
  "name": "webhooks delete",
  "summary": "Delete a webhook.",
  "method": "DELETE",
  "path": "/webhooks/{webhookId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "webhookId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the webhook"
   }
  ]
 },
 {
  "name": "webhooks get",
  "summary": "Get one webhook.",
  "method": "GET",
  "path": "/webhooks/{webhookId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "webhookId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the webhook"
   }
  ]
 },
 {
  "name": "webhooks list",
  "summary": "List webhooks, newest first.",
  "method": "GET",
  "path": "/webhooks",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "webhooks replay",
  "summary": "Deliver again: one delivery, or all that died since a time.",
  "method": "POST",
  "path": "/webhooks/{webhookId}/replay",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "webhookId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the webhook"
   },
   {
    "name": "deliveryId",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "The delivery to send again"
   },
   {
    "name": "since",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Send every delivery again that died since then (ISO 8601)"
   },
   {
    "name": "dryRun",
    "in": "body",
    "type": "boolean",
    "required": false,
    "about": "With `since`: only count them"
   }
  ]
 },
 {
  "name": "webhooks rotate-secret",
  "summary": "Create a new secret; the old one also signs for 24 hours.",
  "method": "POST",
  "path": "/webhooks/{webhookId}/rotate-secret",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "webhookId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the webhook"
   }
  ]
 },
 {
  "name": "webhooks test",
  "summary": "Send the event webhook.test to this webhook.",
  "method": "POST",
  "path": "/webhooks/{webhookId}/test",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "webhookId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the webhook"
   }
  ]
 },
 {
  "name": "webhooks update",
  "summary": "Update the URL or the event types of a webhook, or disable it.",
  "method": "PATCH",
  "path": "/webhooks/{webhookId}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "webhookId",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the webhook"
   },
   {
    "name": "url",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "New URL"
   },
   {
    "name": "events",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Replaces the subscribed event types"
   },
   {
    "name": "isActive",
    "in": "body",
    "type": "boolean",
    "required": false,
    "about": "Whether events are delivered; `true` enables a webhook that the service disabled"
   }
  ]
 },
 {
  "name": "withdrawals bank-accounts create",
  "summary": "Register a bank account for withdrawals.",
  "method": "POST",
  "path": "/wallet-infra/bank-accounts",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "accountName",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Name of the account holder"
   },
   {
    "name": "currency",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "GBP, USD or EUR"
   },
   {
    "name": "sortCode",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "GBP: sort code of the bank"
   },
   {
    "name": "accountNumber",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "GBP and USD: account number"
   },
   {
    "name": "routingNumber",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "USD: routing number of the bank (ABA)"
   },
   {
    "name": "iban",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "EUR: IBAN of the account"
   },
   {
    "name": "swiftBic",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "EUR: BIC of the bank"
   }
  ]
 },
 {
  "name": "withdrawals bank-accounts delete",
  "summary": "Delete a bank account and erase its details.",
  "method": "DELETE",
  "path": "/wallet-infra/bank-accounts/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the bank account"
   }
  ]
 },
 {
  "name": "withdrawals bank-accounts get",
  "summary": "Get one bank account.",
  "method": "GET",
  "path": "/wallet-infra/bank-accounts/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the bank account"
   }
  ]
 },
 {
  "name": "withdrawals bank-accounts list",
  "summary": "List bank accounts, newest first.",
  "method": "GET",
  "path": "/wallet-infra/bank-accounts",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   }
  ]
 },
 {
  "name": "withdrawals create",
  "summary": "Pay money from a managed wallet or child address to a bank account.",
  "method": "POST",
  "path": "/wallet-infra/withdraw",
  "isList": false,
  "takesIdempotencyKey": true,
  "arguments": [
   {
    "name": "fromWalletId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The master wallet or child address that pays"
   },
   {
    "name": "fromWalletType",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Kind of the wallet; one of master, child"
   },
   {
    "name": "amount",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Decimal amount in whole tokens, 50 or more"
   },
   {
    "name": "token",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Symbol of the token that is sold"
   },
   {
    "name": "chain",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "The chain that the money leaves; one of base, ethereum, optimism, arbitrum, polygon, tempo, base-sepolia, eth-sepolia, tempo-moderato"
   },
   {
    "name": "bankAccountId",
    "in": "body",
    "type": "text",
    "required": true,
    "about": "Identifies the bank account"
   },
   {
    "name": "reference",
    "in": "body",
    "type": "text",
    "required": false,
    "about": "Text on the bank statement: GBP 1-18, EUR 6-140, USD 1-10 characters"
   },
   {
    "name": "metadata",
    "in": "body",
    "type": "json",
    "required": false,
    "about": "Your own data, at most 16 KiB of JSON and 50 members. Responses contain it, and lists find it"
   }
  ]
 },
 {
  "name": "withdrawals get",
  "summary": "Get a withdrawal.",
  "method": "GET",
  "path": "/wallet-infra/withdrawals/{id}",
  "isList": false,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "id",
    "in": "path",
    "type": "text",
    "required": true,
    "about": "Identifies the withdrawal"
   }
  ]
 },
 {
  "name": "withdrawals list",
  "summary": "List the withdrawals, newest first.",
  "method": "GET",
  "path": "/wallet-infra/withdrawals",
  "isList": true,
  "takesIdempotencyKey": false,
  "arguments": [
   {
    "name": "limit",
    "in": "query",
    "type": "number",
    "required": false,
    "about": "Most items of a page"
   },
   {
    "name": "cursor",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Where the page starts: the cursor in the `Link` header of the page before"
   },
   {
    "name": "from",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "From this time on (ISO 8601)"
   },
   {
    "name": "to",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Before this time (ISO 8601)"
   },
   {
    "name": "status",
    "in": "query",
    "type": "text",
    "required": false,
    "about": "Only withdrawals in this state; one of pending_conversion, conversion_complete, completed, failed"
   },
   {
    "name": "metadata",
    "in": "query",
    "type": "json",
    "required": false,
    "about": "One member of the metadata and its value: a text, a number or a boolean. In a URL it is `metadata.<key>=<value>`"
   }
  ]
 }
]
