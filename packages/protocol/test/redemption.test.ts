import { hashMessage } from 'viem'
import { expect, test } from 'vitest'
import { keccak256, redemptionHash, redemptionMessage } from '../src/index.ts'

test('the signed hash is the one of EIP-191', () => {
  const claim = {
    payment: 'eip3009:é',
    method: 'GET',
    resource: 'https://api.example.com/weather?city=Lima',
    signedAt: '2026-11-23T04:00:00.000Z',
  }
  const expected = hashMessage(redemptionMessage(claim))
  expect(`0x${Buffer.from(redemptionHash(keccak256, claim)).toString('hex')}`).toBe(expected)
})
