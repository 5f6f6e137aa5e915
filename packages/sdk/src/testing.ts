import { call } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Answer, Body } from './operations.ts'
import type { CallOptions, Send } from './transport.ts'

export type NewTestDeposit = Body<operations['test.deposits.create']>
export type TestDeposit = Answer<operations['test.deposits.create']>

/** The operations for the test environment, if the deployment has them. */
export function testingOf(send: Send) {
  return {
    deposits: {
      /** Sends test money from the faucet to a wallet. `deposit.success` reports it. */
      create: (body: NewTestDeposit, options?: CallOptions): Promise<TestDeposit> =>
        call(send, 'POST', '/test/deposits', { ...options, body }),
    },
  }
}
