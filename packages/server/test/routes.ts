import { type Address, type NetworkName, networkByName, tokenBySymbol, zeroAddress } from '@purser/protocol'
import type { RouteEnd, RouteRequest } from '../src/partners/routing/port.ts'

/** A token on a network; `native` is the network's coin, and an address is another token. */
export function endOn(name: NetworkName, symbol: string): RouteEnd {
  const network = networkByName(name)
  if (network === undefined) throw new Error(`no network ${name}`)
  if (symbol === 'native') return { network, token: { symbol: 'ETH', address: zeroAddress, decimals: 18 } }
  const token = tokenBySymbol(network, symbol)
  if (token === undefined) throw new Error(`no ${symbol} on ${name}`)
  return { network, token }
}

export const sender: Address = '0x552008c0f6870c2f77e5cC1d2eb9bdff03e30Ea0'
export const receiver: Address = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
export const stranger: Address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'

export function requestFor(from: RouteEnd, to: RouteEnd, rawAmount = 10_000_000n): RouteRequest {
  return { from, to, rawAmount, fromAddress: sender, toAddress: receiver, slippageBps: 50 }
}
