import type { IncomingMessage, ServerResponse } from 'node:http'
import { Challenge } from 'mppx'
import { evm, Mppx, tempo } from 'mppx/server'

/** The payment terms of an official mppx server, and the secret that binds its challenges. */
export interface MppxBill {
  readonly realm: string
  readonly secret: string
  readonly payTo: `0x${string}`
  readonly token: `0x${string}`
  readonly domain: { readonly name: string; readonly version: string }
  readonly chainId: number
  /** Decimal dollars. */
  readonly price: string
}

/** Resolves with whether the request was paid for. If it was not, the 402 is written already. */
export type MppxListener = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>

const pathUsd = '0x20c0000000000000000000000000000000000000'

/**
 * The official mppx server, set up as in its documentation, for benchmarks and tests to compare with: `one` offers
 * evm/charge with x402 beside it, `dual` also tempo/charge. Its settlement costs nothing and records nothing.
 */
export function mppxServer(bill: MppxBill): { readonly one: MppxListener; readonly dual: MppxListener } {
  const { compose } = Mppx.create({
    secretKey: bill.secret,
    realm: bill.realm,
    methods: [tempo.charge({ currency: pathUsd, recipient: bill.payTo, testnet: true }), evmCharge(bill)],
  })
  const requested = { amount: bill.price, description: 'Daily report' }
  const listener = (handler: Parameters<typeof Mppx.toNodeListener>[0]): MppxListener => {
    const listen = Mppx.toNodeListener(handler)
    return async (request, response) => (await listen(request, response)).status !== 402
  }
  return {
    one: listener(compose(['evm/charge', requested])),
    dual: listener(compose(['tempo/charge', requested], ['evm/charge', requested])),
  }
}

/** Challenges of that server, as its header writes them, each with its own id. */
export async function mppxChallenges(bill: MppxBill, count: number): Promise<string[]> {
  const { challenge } = Mppx.create({ secretKey: bill.secret, realm: bill.realm, methods: [evmCharge(bill)] })
  const made: string[] = []
  for (let index = 0; index < count; index += 1) {
    const requested = { amount: bill.price, description: 'Daily report', expires: expiryOf(index) }
    made.push(Challenge.serialize(await challenge.evm.charge(requested)))
  }
  return made
}

/** The description is not part of the id: only the expiry distinguishes two challenges of one route. */
function expiryOf(index: number): string {
  return new Date(Date.now() + 3_600_000 + index).toISOString()
}

function evmCharge({ token, payTo, chainId, domain }: MppxBill) {
  const x402 = { facilitator: { verify: notConfigured, settle: notConfigured } }
  return evm.charge({
    currency: token,
    recipient: payTo,
    chainId,
    decimals: 6,
    authorization: domain,
    settle: async () => ({ reference: `0x${'00'.repeat(32)}` }),
    x402,
  })
}

async function notConfigured(): Promise<never> {
  throw new Error('x402 payments are not set up here')
}
