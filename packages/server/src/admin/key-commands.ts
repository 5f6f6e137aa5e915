import { z } from 'zod'
import {
  type KekRotation,
  type KeyRing,
  rotateKek,
  rotateMppSecret,
  rotateSealKey,
  withdrawSealKey,
} from '../custody/index.ts'
import { type Command, type CommandOutcome, command, type Operator } from './command.ts'

const rotateMpp = command({
  name: 'rotate-mpp-secret',
  summary: 'Make a new secret for MPP challenges; those made under the old one can be paid until they expire.',
  options: {},
  schema: z.strictObject({}),
  run: (operator) =>
    withKeys(operator, async (ring) => {
      const rotation = await rotateMppSecret({ ...operator, ring })
      const { current, retired } = rotation
      const lines = [`${current} is the MPP secret`, ...(retired === null ? [] : [`${retired} is retired`])]
      return {
        lines: [...lines, 'Running processes use it within 30 seconds.'],
        json: rotation,
        exitCode: 0,
      }
    }),
})

const rotateKeys = command({
  name: 'keys rotate',
  summary: 'Re-encrypt everything sealed with the key-encryption key that KEY_ENCRYPTION names; run again to finish.',
  options: {},
  schema: z.strictObject({}),
  run: (operator) =>
    withKeys(operator, async (ring) => {
      const rotation = await rotateKek({ ...operator, ring })
      return { lines: linesOf(rotation), json: rotation, exitCode: rotation.failed.length === 0 ? 0 : 1 }
    }),
})

const rotateSeal = command({
  name: 'keys rotate-seal',
  summary: 'Make a new key for offers, receipts, seals and webhooks; the old one stays in the key set.',
  options: {},
  schema: z.strictObject({}),
  run: (operator) =>
    withKeys(operator, async (ring) => {
      const rotation = await rotateSealKey({ ...operator, ring })
      const { current, retired } = rotation
      const lines = [`${current} is in the key set and signs in ten minutes`, `${retired ?? 'none'} signs until then`]
      return { lines, json: rotation, exitCode: 0 }
    }),
})

const withdrawSeal = command({
  name: 'keys withdraw-seal',
  summary: 'Remove a leaked key of offers, receipts, seals and webhooks from the key set.',
  options: { key: 'the kid of the key, as in the key set' },
  schema: z.strictObject({
    key: z.string().regex(/^seal-[0-9a-f]{16}$/, 'is not the kid of a seal key, such as seal-0123456789abcdef'),
  }),
  run: (operator, { key }) =>
    withKeys(operator, async (ring) => {
      const withdrawal = await withdrawSealKey({ ...operator, ring }, key)
      if (withdrawal === undefined) {
        const error = `${key} is no key of the key set`
        return { lines: [error], json: { error }, exitCode: 1 }
      }
      const lines = [
        `${key} is withdrawn: within five minutes nothing that it signed is accepted`,
        `${withdrawal.current} signs. Restart the processes one by one, so that none signs with ${key} once more.`,
      ]
      return { lines, json: withdrawal, exitCode: 0 }
    }),
})

export const keyCommands: readonly Command[] = [rotateMpp, rotateKeys, rotateSeal, withdrawSeal]

async function withKeys(operator: Operator, work: (ring: KeyRing) => Promise<CommandOutcome>): Promise<CommandOutcome> {
  if (operator.openKeys !== undefined) return work(await operator.openKeys())
  const reason =
    'set KEY_ENCRYPTION_KEY_FILE, KEY_ENCRYPTION_KEY or KEY_ENCRYPTION and its settings as for purser serve: keys are sealed with it'
  return { lines: [reason], json: { error: reason }, exitCode: 1 }
}

function linesOf({ current, rewrapped, failed }: KekRotation): string[] {
  const counts = Object.entries(rewrapped).map(([table, count]) => `${table}: ${count} data keys rewrapped`)
  const faults = failed.map(({ row, reason }) => `${row} FAILED: ${reason}`)
  const last =
    failed.length === 0
      ? 'No data key uses another key any more: remove the old one from KEY_ENCRYPTION_ALSO and restart the processes one by one.'
      : 'Keep the old key: the rows that failed still use it.'
  return [`${current} is the key-encryption key`, ...counts, ...faults, last]
}
