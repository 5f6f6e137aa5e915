import { chainErrors } from '../../chain/errors.ts'
import { type Operation, operation } from '../../platform/operation.ts'
import { createTestDeposit, repeatedDeposit } from './deposits.ts'
import { fail } from './errors.ts'
import { NewTestDeposit, TestDeposit } from './schema.ts'

export const testOperations: readonly Operation[] = [
  operation({
    id: 'test.deposits.create',
    needs: { role: 'member', scope: 'wallets' },
    method: 'POST',
    path: '/test/deposits',
    summary: 'Send test money to a wallet of the test environment.',
    description: [
      'The faucet sends a real transfer on the wallet’s test network. It is booked, screened and reported as every deposit is:',
      '`deposit.success` comes when its block is final. Where the operator has set no faucet, and for live keys, it is 403.',
    ].join(' '),
    input: NewTestDeposit,
    output: TestDeposit,
    status: 202,
    errors: { ...fail.table, ...chainErrors },
    // It reads a balance from a chain, so it must not run inside a transaction.
    idempotency: 'intent',
    resume: repeatedDeposit,
    run: (ctx, { body }) => createTestDeposit(ctx, body),
  }),
]
