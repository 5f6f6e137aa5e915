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
import { openApiDocument } from './platform/http/openapi.ts'
import type { Operation } from './platform/operation.ts'

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

/** The OpenAPI 3.1 document; `openapi.json` is its committed copy. */
export const openApi = openApiDocument(
  operations,
  {
    title: 'Purser',
    version: '1.0.0',
    description:
      'Payments and wallet infrastructure for AI agents: x402 challenges, verification and settlement on chain.',
  },
  eventPayloads,
)
