import {
  type Address,
  encodeMppJson,
  evmChargeRequest,
  formatChallenges,
  type MppChallenge,
  networkByName,
  tempoChargeRequest,
  tokenBySymbol,
} from '@purser/protocol'
import { expect } from 'vitest'
import { createPayingFetch, type PayingFetchOptions, UnsupportedPaymentError } from '../src/pay/index.ts'
import { base, baseSepolia, errorOf, listeningSigner, must, noon, payTo, seller, usdc } from './pay-stage.ts'

export const url = 'https://api.seller.test/report'
export const stranger: Address = '0x1111111111111111111111111111111111111111'
const tempo = must(networkByName('tempo-moderato'))
const pathUsd = must(tokenBySymbol(tempo, 'pathUSD'))
export const onBase = [base, must(tokenBySymbol(base, 'USDC'))] as const

export function stage(unpaid: HeadersInit, options: Partial<PayingFetchOptions> = {}) {
  const signer = listeningSigner()
  const fetch = seller(() => unpaid)
  const pay = createPayingFetch({ signer, limits: { perCall: '1' }, fetch, now: () => noon, ...options })
  return { signer, fetch, pay }
}

const later = new Date(noon + 300_000).toISOString()

export function challenge(changes: Partial<MppChallenge> = {}): MppChallenge {
  const requested = {
    amount: '10000',
    currency: usdc.address,
    recipient: payTo,
    chainId: baseSepolia.chainId,
    decimals: 6,
  }
  const request = encodeMppJson(evmChargeRequest(requested))
  return { id: 'ch_1', realm: 'api.seller.test', method: 'evm', intent: 'charge', request, expires: later, ...changes }
}

export function tempoChallenge(
  amount: string,
  more: { feePayer?: boolean; supportedModes?: ('pull' | 'push')[] } = {},
) {
  const requested = { amount, currency: pathUsd.address, recipient: payTo, chainId: tempo.chainId, ...more }
  return challenge({ method: 'tempo', request: encodeMppJson(tempoChargeRequest(requested)) })
}

export const mpp = (...challenges: MppChallenge[]) => ({ 'WWW-Authenticate': formatChallenges(challenges) })

/** Pays nothing, and says why each offer was not taken. */
export async function refusalsOf(unpaid: HeadersInit, options: Partial<PayingFetchOptions> = {}) {
  const { pay, signer } = stage(unpaid, options)
  const error = await errorOf(pay(url))
  expect(error).toBeInstanceOf(UnsupportedPaymentError)
  expect(signer.requested).toEqual([])
  return error instanceof UnsupportedPaymentError ? error.refusals.map(({ reason }) => reason) : []
}
