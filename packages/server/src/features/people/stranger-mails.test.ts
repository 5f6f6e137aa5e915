import { expect, test } from 'vitest'
import { limitStrangerMails } from './stranger-mails.ts'

test('mails to new addresses have a limit for each site and one for all, of which the log tells once in ten minutes', () => {
  let now = 0
  const warnings: string[] = []
  const log = { warn: (_: object, message: string) => void warnings.push(message) }
  const strangers = limitStrangerMails({ clock: { now: () => new Date(now) }, log } as never)
  const admitted = (site: number, count: number) =>
    Array.from({ length: count }, (_, at) => strangers.mayRequest(`10.0.${site}.${at}`) && strangers.maySend()).filter(
      Boolean,
    ).length
  expect(admitted(0, 100)).toBe(60)
  let all = 60
  for (let site = 1; site <= 50; site++) all += admitted(site, 60)
  expect(all).toBe(2_000)
  expect(warnings).toHaveLength(1)
  now += 3_600_000
  expect(admitted(0, 100)).toBe(60)
  for (let site = 1; site <= 50; site++) admitted(site, 60)
  expect(warnings).toHaveLength(2)
})

test('requests that send no mail leave the limit of all sites to others', () => {
  const clock = { now: () => new Date(0) }
  const strangers = limitStrangerMails({ clock, log: { warn: () => expect.unreachable() } } as never)
  for (let site = 0; site < 100; site++) for (let count = 0; count < 60; count++) strangers.mayRequest(`10.0.${site}.1`)
  expect([strangers.mayRequest('10.1.0.1'), strangers.maySend()]).toEqual([true, true])
})
