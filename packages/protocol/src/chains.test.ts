import { DEFAULT_ASSETS } from '@x402/evm'
import { getAddress } from 'viem'
import * as viemChains from 'viem/chains'
import { expect, test } from 'vitest'
import {
  chainNameOf,
  networkByCaip2,
  networkByX402V1Name,
  resolveNetwork,
  tokenByAddress,
  tokenBySymbol,
} from './chains.ts'
import { chains, networks } from './networks.ts'

test('a test key never reaches a network with real money, under no name', () => {
  for (const chain of chains) expect(resolveNetwork(chain, 'test')?.isTestnet, chain).toBe(true)
})

test('a live key reaches real networks under their names, and no test network', () => {
  for (const chain of chains) {
    const network = resolveNetwork(chain, 'live')
    const isTestChain = ['base-sepolia', 'eth-sepolia', 'tempo-moderato'].includes(chain)
    expect(network?.name, chain).toBe(isTestChain ? undefined : chain)
    expect(network?.isTestnet ?? false).toBe(false)
  }
})

test('in the test environment the mainnet names mean their test networks', () => {
  const resolved = Object.fromEntries(chains.map((chain) => [chain, resolveNetwork(chain, 'test')?.chainId]))
  expect(resolved).toEqual({
    base: 84532,
    ethereum: 11155111,
    optimism: 11155420,
    arbitrum: 421614,
    polygon: 80002,
    tempo: 42431,
    'base-sepolia': 84532,
    'eth-sepolia': 11155111,
    'tempo-moderato': 42431,
  })
})

test('every network has a name of the public API, which means it', () => {
  const named = networks.map((network) => [network.name, chainNameOf(network)])
  expect(named.filter(([name, chain]) => name !== chain)).toEqual([
    ['optimism-sepolia', 'optimism'],
    ['arbitrum-sepolia', 'arbitrum'],
    ['polygon-amoy', 'polygon'],
  ])
  for (const network of networks)
    expect(resolveNetwork(chainNameOf(network), network.isTestnet ? 'test' : 'live')).toBe(network)
})

test('every network can be found by each of its names, and by no other', () => {
  expect(networks).toHaveLength(12)
  for (const network of networks) {
    expect(networkByCaip2(`eip155:${network.chainId}`)).toBe(network)
    if (network.x402V1Name !== null) expect(networkByX402V1Name(network.x402V1Name)).toBe(network)
  }
  expect(networkByX402V1Name('sepolia')?.name).toBe('eth-sepolia')
  for (const name of ['', 'optimism', 'arbitrum', 'eip155:8453', '__proto__', 'constructor']) {
    expect(networkByX402V1Name(name), name).toBeUndefined()
  }
  expect(networkByCaip2('eip155:08453')).toBeUndefined()
})

test('chain ids, native coins and testnet flags are those that viem knows', () => {
  const known = new Map<number, (typeof viemChains)[keyof typeof viemChains]>(
    Object.values(viemChains).map((chain) => [chain.id, chain]),
  )
  for (const network of networks) {
    expect(Boolean(known.get(network.chainId)?.testnet), network.name).toBe(network.isTestnet)
    if (network.nativeCoin !== null) {
      expect(known.get(network.chainId)?.nativeCurrency.decimals, network.name).toBe(network.nativeCoin.decimals)
      expect(known.get(network.chainId)?.nativeCurrency.symbol, network.name).toBe(network.nativeCoin.symbol)
    }
  }
})

test('USDC is where the official SDK says that it is, with its domain', () => {
  const official = new Map(Object.entries(DEFAULT_ASSETS).map(([caip2, assets]) => [caip2, assets[0]]))
  const compared = networks.filter((network) => official.has(network.caip2))
  expect(compared.map(({ name }) => name)).toEqual([
    'base',
    'ethereum',
    'arbitrum',
    'polygon',
    'base-sepolia',
    'arbitrum-sepolia',
  ])
  for (const network of compared) {
    const { asset, name, version, decimals } = official.get(network.caip2) ?? {}
    expect(tokenBySymbol(network, 'USDC')).toMatchObject({ address: asset, decimals, eip712: { name, version } })
  }
})

test('tokens are found by address in any case, only on their own network, and the registry has their checksummed form', () => {
  for (const network of networks) {
    for (const token of network.tokens) {
      expect(token.address).toBe(getAddress(token.address))
      expect(tokenByAddress(network, token.address.toLowerCase())).toBe(token)
      expect(token.eip3009).toBe(token.eip712 !== null)
      if (!network.settlesEip3009) expect(token.eip3009).toBe(false)
      for (const other of networks) {
        if (other !== network && !other.name.startsWith('tempo'))
          expect(tokenByAddress(other, token.address)).toBeUndefined()
      }
    }
    expect(tokenBySymbol(network, 'usdc')).toBeUndefined()
  }
})

test('a deposit of real money waits for a block that the network itself calls safe, and never less than a payment does', () => {
  for (const { name, isTestnet, depositFinality, confirmationDepth } of networks) {
    if (isTestnet) expect('depth' in depositFinality && depositFinality.depth >= confirmationDepth, name).toBe(true)
    else expect('tag' in depositFinality, name).toBe(true)
  }
})
