import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'
import type { DevPayer } from './dev-file.ts'

/** One request as sent, and its response. */
interface Exchange {
  /** The signed payment that the request carried. */
  readonly paymentSignature: string | null
  readonly status: number
  readonly headers: Headers
}

/** An agent's paid call: every exchange in order, and the body of the last response. */
export interface PaidCall {
  readonly exchanges: readonly Exchange[]
  readonly body: unknown
}

/** Calls a route as an agent does, with the official x402 client, which signs and sends the required payment. */
export async function callAndPay(url: string, payer: DevPayer, network: `eip155:${number}`): Promise<PaidCall> {
  const exchanges: Exchange[] = []
  const listening: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    const paymentSignature = request.headers.get(paymentHeader)
    const response = await fetch(request)
    exchanges.push({ paymentSignature, status: response.status, headers: response.headers })
    return response
  }
  const client = new x402Client().register(network, new ExactEvmScheme(privateKeyToAccount(payer.privateKey)))
  const response = await wrapFetchWithPayment(listening, client)(url)
  return { exchanges, body: await response.json() }
}

/** Sends a signed payment a second time, as an observer of the request could. */
export function replay(url: string, paymentSignature: string): Promise<Response> {
  return fetch(url, { headers: { [paymentHeader]: paymentSignature } })
}

const paymentHeader = 'PAYMENT-SIGNATURE'
