import { accountOperations } from './features/account/index.ts'
import { approvalOperations } from './features/approvals/index.ts'
import { billingOperations } from './features/billing/index.ts'
import { chainOperations } from './features/chains/index.ts'
import { organisationOperations } from './features/organisations/index.ts'
import { facilitatorOperations, paymentOperations } from './features/payments/index.ts'
import { peopleOperations } from './features/people/index.ts'
import { registryOperations } from './features/registry/index.ts'
import { requestOperations } from './features/requests/index.ts'
import { sessionOperations } from './features/sessions/index.ts'
import { testOperations } from './features/testing/index.ts'
import { legacyWithdrawOperations, payingOperations, transferOperations } from './features/transfers/index.ts'
import {
  vaultFileOperations,
  vaultOperations,
  vaultStreamOperations,
  vaultTokenOperations,
} from './features/vaults/index.ts'
import { depositOperations, walletOperations } from './features/wallets/index.ts'
import { eventOperations, eventPayloads, listenOperations, webhookOperations } from './features/webhooks/index.ts'
import { bankAccountOperations, withdrawalOperations } from './features/withdrawals/index.ts'
import { apiVersion } from './platform/api-version.ts'
import { openApiDocument } from './platform/http/openapi.ts'
import type { Operation } from './platform/operation.ts'
import recordedExamples from './recorded-examples.json' with { type: 'json' }

/** All public API operations. */
export const operations: readonly Operation[] = [
  ...paymentOperations,
  ...facilitatorOperations,
  ...walletOperations,
  ...depositOperations,
  ...testOperations,
  ...transferOperations,
  ...payingOperations,
  ...legacyWithdrawOperations,
  ...approvalOperations,
  ...bankAccountOperations,
  ...withdrawalOperations,
  ...chainOperations,
  ...organisationOperations,
  ...requestOperations,
  ...accountOperations,
  ...peopleOperations,
  ...billingOperations,
  ...registryOperations,
  ...sessionOperations,
  ...vaultOperations,
  ...vaultFileOperations,
  ...vaultTokenOperations,
  ...vaultStreamOperations,
  ...webhookOperations,
  ...eventOperations,
  ...listenOperations,
]

const tagDescriptions = {
  account: 'The calling person or API key: its organisations, usage, payment logs, invitations and sign-in sessions.',
  approvals: 'Transfers, withdrawals, payments and refunds that wait for a person to approve or refuse them.',
  billing: 'The plan of the organisation, and how much of it is used.',
  chains: 'The chains that the service uses, and the tokens on each.',
  events: 'The events of the organisation, the event types, and a stream for development.',
  facilitator: 'The x402 facilitator: verification and settlement for servers that make their own challenges.',
  organisations: 'Organisations, their members, API keys and audit log.',
  payments: 'Payments for routes: challenge, verification, settlement, delivery and refund.',
  registry: 'The paid routes of the organisation, and which of them are public.',
  requests: 'The organisation’s API requests, with the status of each response.',
  sessions: 'Sessions of a payer: one payment for many requests.',
  test: 'Only in the test environment: deposits and payments of test money on test networks, and a clock to advance.',
  transfers: 'Transfers of money from wallets, with quotes.',
  vaults: 'Workspaces that come with a payment: documents, files, events, and a proof once sealed.',
  wallets: 'Wallets of every kind: balances, deposits, sweeps, spend policies, and payments to others.',
  webhooks: 'URLs that receive the signed events, and the attempts to deliver them.',
  withdrawals: 'Withdrawals to bank accounts.',
} as const

const info = {
  title: 'Purser',
  version: apiVersion,
  description:
    'Payments and wallet infrastructure for AI agents: x402 challenges, verification and settlement on chain.\n\n' +
    '## Errors\n\nAn error is a problem record (RFC 9457) whose `type` ends with a code. `x-problems` of an operation names its errors, beside ' +
    'those of its method in `x-every-operation` and of the responses `4XX` and `5XX`; `x-problems` of the components has the status, title and detail of each. A name is a ' +
    'code, followed by a dot and a status where one code has several meanings.',
}

/** Makes the OpenAPI 3.1 document, whose committed copy is `openapi.json`. It takes about 200 ms, so a start does not wait for it. */
export function makeOpenApi(): Readonly<Record<string, unknown>> {
  return openApiDocument(operations, info, eventPayloads, { tags: tagDescriptions, examples: recordedExamples })
}
