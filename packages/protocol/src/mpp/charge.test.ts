import { evm } from 'mppx'
import { Methods } from 'mppx/tempo'
import { expect, test } from 'vitest'
import {
  evmChargeRequest,
  parseEvmChargeRequest,
  parseTempoChargeRequest,
  type TempoChargeRequest,
  tempoChargeRequest,
} from './charge.ts'
import { encodeMppJson } from './encoding.ts'

const tempo = {
  amount: '10000',
  currency: '0x20C0000000000000000000000000000000000000',
  recipient: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
  chainId: 42431,
} as const
const onEvm = { ...tempo, currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', chainId: 84532, decimals: 6 } as const
const texts = { description: 'Wetter für Zürich', externalId: 'order-7' } as const

test('a tempo charge has the wire form that mppx gives it', () => {
  const cases: readonly TempoChargeRequest[] = [
    tempo,
    { ...tempo, ...texts },
    { ...tempo, feePayer: true, supportedModes: ['pull'] },
    { ...tempo, feePayer: false, supportedModes: ['push', 'pull'] },
  ]
  for (const given of cases) {
    const { supportedModes, ...rest } = given
    const input = { ...rest, ...(supportedModes && { supportedModes: [...supportedModes] }) }
    const official = Methods.charge.schema.request.parse({ ...input, amount: '0.01', decimals: 6 })
    expect(encodeMppJson(tempoChargeRequest(given))).toBe(encodeMppJson({ ...official }))
    expect(parseTempoChargeRequest(tempoChargeRequest(given))).toEqual(given)
  }
})

test('an evm charge has the wire form that mppx gives it', () => {
  for (const given of [onEvm, { ...onEvm, ...texts }]) {
    const official = evm.Methods.charge.schema.request.parse({ ...given, amount: '0.01' })
    expect(encodeMppJson(evmChargeRequest(given))).toBe(encodeMppJson({ ...official }))
    expect(evm.ChargeRequestSchema.parse(evmChargeRequest(given))).toEqual(evmChargeRequest(given))
    expect(parseEvmChargeRequest(evmChargeRequest(given))).toEqual({ ...given, credentialTypes: ['authorization'] })
  }
})

test('a tempo charge that asks for more than one transfer, or cannot be understood, is not read', () => {
  const wire = tempoChargeRequest(tempo)
  const details = { chainId: 42431 }
  for (const change of [
    { amount: '0.01' },
    { amount: 10_000 },
    { currency: 'USD' },
    { recipient: undefined },
    { description: 7 },
    { methodDetails: undefined },
    { methodDetails: {} },
    { methodDetails: { chainId: '42431' } },
    { methodDetails: { chainId: -1 } },
    { methodDetails: { ...details, feePayer: 'yes' } },
    { methodDetails: { ...details, supportedModes: [] } },
    { methodDetails: { ...details, supportedModes: ['carrier-pigeon'] } },
    { methodDetails: { ...details, memo: `0x${'0'.repeat(64)}` } },
    { methodDetails: { ...details, splits: [{ amount: '1', recipient: tempo.recipient }] } },
    { methodDetails: { ...details, splits: 'half' } },
  ])
    expect(parseTempoChargeRequest({ ...wire, ...change }), JSON.stringify(change)).toBeUndefined()
  expect(parseTempoChargeRequest({ ...wire, methodDetails: { ...details, splits: [], future: 1 } })).toEqual(tempo)
})

test('an evm charge that asks for splits, or cannot be understood, is not read; other credentials stay visible', () => {
  const wire = evmChargeRequest(onEvm)
  const details = { chainId: 84532, decimals: 6 }
  for (const change of [
    { amount: '-1' },
    { currency: tempo.currency.slice(2) },
    { methodDetails: [] },
    { methodDetails: { decimals: 6 } },
    { methodDetails: { chainId: 84532 } },
    { methodDetails: { ...details, decimals: 256 } },
    { methodDetails: { ...details, credentialTypes: 'authorization' } },
    { methodDetails: { ...details, credentialTypes: [1] } },
    { methodDetails: { ...details, splits: [{ amount: '1', recipient: tempo.recipient }] } },
  ])
    expect(parseEvmChargeRequest({ ...wire, ...change }), JSON.stringify(change)).toBeUndefined()
  const credentialTypes = ['permit2', 'authorization']
  expect(parseEvmChargeRequest({ ...wire, methodDetails: { ...details, credentialTypes } })).toEqual({
    ...onEvm,
    credentialTypes,
  })
  expect(parseEvmChargeRequest({ ...wire, methodDetails: details })).toEqual({ ...onEvm, credentialTypes: [] })
})
