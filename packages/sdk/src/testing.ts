import { call } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Json, ResponseBody } from './operations.ts'
import type { CallOptions, Send } from './transport.ts'

export type NewTestDeposit = Body<operations['test.deposits.create']>
export type TestDeposit = Json<operations['test.deposits.create']['responses'][202]>
export type NewClockChange = Body<operations['test.clock.advance']>
export type ClockChange = ResponseBody<operations['test.clock.advance']>
export type NewTestPayment = Body<operations['test.payments.create']>
type Payment = ResponseBody<operations['test.payments.create']>

/** The operations for the test environment, if the deployment has them. */
export function testingOf(send: Send) {
  return {
    payments: {
      /** Pays a wallet from the faucet: a real payment, verified and settled on the test network. */
      create: (body: NewTestPayment, options?: CallOptions): Promise<Payment> =>
        call(send, 'POST', '/test/payments', { ...options, body }),
    },
    clock: {
      /**
       * Advances the time of the test environment: vaults, sessions and approvals expire earlier, policy periods end
       * earlier and webhooks are retried earlier.
       */
      advance: (body: NewClockChange, options?: CallOptions): Promise<ClockChange> =>
        call(send, 'POST', '/test/clock', { ...options, body }),
    },
    deposits: {
      /** Sends test money from the faucet to a wallet. `deposit.success` reports it. */
      create: (body: NewTestDeposit, options?: CallOptions): Promise<TestDeposit> =>
        call(send, 'POST', '/test/deposits', { ...options, body }),
    },
  }
}
