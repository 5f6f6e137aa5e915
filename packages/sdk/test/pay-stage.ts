import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  type Address,
  decodeJsonBase64,
  encodePaymentRequired,
  type Network,
  networkByName,
  type PaymentRequirementsV2,
  type TokenInfo,
  tokenBySymbol,
} from '@purser/protocol'
import { privateKeyToAccount } from 'viem/accounts'
import { onTestFinished } from 'vitest'
import type { Signer, TypedData } from '../src/pay/index.ts'
import { close, listen } from './fake-purser.ts'

export const account = privateKeyToAccount('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d')
export const payTo: Address = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
export const baseSepolia = must(networkByName('base-sepolia'))
export const base = must(networkByName('base'))
export const usdc = must(tokenBySymbol(baseSepolia, 'USDC'))

/** The fixed time of a test clock. */
export const noon = Date.parse('2026-11-21T12:00:00Z')

export function must<T>(value: T | undefined | null): T {
  if (value === undefined || value === null) throw new Error('the fixture is broken')
  return value
}

/** The account as a signer that records what it is requested to sign. */
export function listeningSigner(): Signer & { readonly requested: TypedData[] } {
  const requested: TypedData[] = []
  return {
    address: account.address,
    requested,
    signTypedData: (typedData) => {
      requested.push(typedData)
      return signAs(typedData)
    },
  }
}

function signAs({ domain, types, primaryType, message }: TypedData) {
  const { name, version, chainId, verifyingContract } = domain
  const full = {
    ...(name === undefined ? {} : { name }),
    ...(version === undefined ? {} : { version }),
    ...(chainId === undefined ? {} : { chainId }),
    ...(verifyingContract === undefined ? {} : { verifyingContract }),
  }
  return account.signTypedData({ domain: full, types, primaryType, message })
}

/** An offer of scheme `exact` in version 2. `amount` is in the token's smallest unit. */
export function offer(
  amount: bigint | string,
  changes: Partial<PaymentRequirementsV2> = {},
  [network, token]: [Network, TokenInfo] = [baseSepolia, usdc],
): PaymentRequirementsV2 {
  return {
    scheme: 'exact',
    network: network.caip2,
    amount: amount.toString(),
    asset: token.address,
    payTo,
    maxTimeoutSeconds: 60,
    extra: { ...token.eip712 },
    ...changes,
  }
}

/** A 402 of version 2. */
export function asks(...accepts: PaymentRequirementsV2[]): { readonly 'PAYMENT-REQUIRED': string } {
  return {
    'PAYMENT-REQUIRED': encodePaymentRequired({ x402Version: 2, resource: { url: 'http://seller.test' }, accepts }),
  }
}

/** A seller without a wire: what it answers to the unpaid and to the paid request. */
export function seller(
  unpaid: (url: URL) => HeadersInit,
  paid: (url: URL) => Response | Promise<Response> = () => new Response('goods'),
): typeof globalThis.fetch & { readonly paid: string[] } {
  const credentials: string[] = []
  const response: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    const credential = request.headers.get('payment-signature') ?? request.headers.get('authorization')
    if (credential === null) return new Response('{}', { status: 402, headers: unpaid(new URL(request.url)) })
    credentials.push(credential)
    return paid(new URL(request.url))
  }
  return Object.assign(response, { paid: credentials })
}

/** A real HTTP server for one test. */
export async function serve(listener: (req: IncomingMessage, res: ServerResponse) => void): Promise<string> {
  const server = createServer(listener)
  const url = await listen(server)
  onTestFinished(() => close(server))
  return url
}

/** All of a request's body. */
export async function bodyOf(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

/** The error with which a promise was rejected. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it was not rejected')
    },
    (error: unknown) => error,
  )
}

/** The parsed content of a header of x402. */
export function decoded(header: string | undefined): unknown {
  return decodeJsonBase64(header ?? '')
}
