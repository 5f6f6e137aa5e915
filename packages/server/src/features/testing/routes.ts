import { chainErrors } from '../../chain/errors.ts'
import { custodyErrors } from '../../custody/errors.ts'
import type { Operation } from '../../platform/operation.ts'
import { Payment, verifyingErrors } from '../payments/index.ts'
import { advanceTestClock } from './clock.ts'
import { createTestDeposit, repeatedDeposit } from './deposits.ts'
import { fail } from './errors.ts'
import { createTestPayment, settledTestPayment } from './payments.ts'
import { type Deps, operation } from './ports.ts'
import { ClockChange, NewClockChange, NewTestDeposit, NewTestPayment, TestDeposit } from './schema.ts'

const { 'test-clock-off': clockOff, ...faucetErrors } = fail.table
const { 'test-payments-off': _payments, ...depositErrors } = faucetErrors
const { 'test-deposits-off': _deposits, 'token-not-supported': _token, ...paymentErrors } = faucetErrors

export const testOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'test.deposits.create',
    needs: { role: 'member', scope: 'wallets' },
    method: 'POST',
    path: '/test/deposits',
    summary: 'Send test money to a wallet of the test environment.',
    description: [
      'The faucet sends a real transfer on the wallet’s test network. It is recorded, screened and reported as every deposit is:',
      '`deposit.success` follows when its block is final. 403 for live keys, and without a faucet.',
    ].join(' '),
    // They share the one account of the faucet, in turn.
    settingCost: 20,
    input: NewTestDeposit,
    output: TestDeposit,
    status: 202,
    errors: { ...depositErrors, ...chainErrors },
    // It reads a balance from a chain, so it must not run inside a transaction.
    idempotency: 'intent',
    resume: repeatedDeposit,
    run: (ctx, { body }) => createTestDeposit(ctx, body),
  }),
  operation({
    id: 'test.payments.create',
    needs: { role: 'member', scope: 'payments' },
    method: 'POST',
    path: '/test/payments',
    summary: 'Create a payment to a test wallet, paid by the faucet.',
    description: [
      'The faucet signs an x402 authorization for the wallet’s own challenge; the payment is verified, recorded and settled on the test network',
      'like every other. The response does not wait for its settlement. 403 for live keys, and without a faucet.',
    ].join(' '),
    input: NewTestPayment,
    output: Payment,
    status: 201,
    errors: { ...verifyingErrors, ...custodyErrors, ...chainErrors, ...paymentErrors },
    // It reads a balance from a chain, so it must not run inside a transaction.
    idempotency: 'intent',
    resume: settledTestPayment,
    run: (ctx, { body }) => createTestPayment(ctx, body),
  }),
  operation({
    id: 'test.clock.advance',
    needs: { role: 'admin', scope: 'organisation' },
    method: 'POST',
    path: '/test/clock',
    summary: 'Advance the test environment in time.',
    settingCost: 0.1,
    description: [
      'Moves every deadline of the test environment closer by this span: ends of sessions, vaults, vault tokens and open approvals, and of',
      'approved payments that wait for a fresh 402; uses in the periods of policies; retries of webhooks. Calendar months, chains and the expiry',
      'of signatures do not move. Times that earlier responses showed are earlier when read again. 403 for live keys, and without `TEST_CLOCK`.',
    ].join(' '),
    input: NewClockChange,
    output: ClockChange,
    errors: { 'test-clock-off': clockOff },
    run: (ctx, { body }) => advanceTestClock(ctx, body),
  }),
]
