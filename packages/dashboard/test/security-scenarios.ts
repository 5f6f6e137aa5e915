import { createPurser } from '@purser/sdk'
import { expect, test } from 'vitest'
import type { DemoData } from './demo-data.ts'
import { attack, startHostileSite } from './hostile-page.ts'
import { pages } from './pages.ts'
import { type Stage, signedInBy } from './people-scenarios.ts'
import { pathOf } from './stage.ts'

/** Who cannot do what, in the browser. */
export function securityScenarios(stage: Stage, demoData: () => Promise<DemoData>): void {
  const { dev, open } = stage

  test.each(['localhost', '127.0.0.1'])(
    'a hostile page at %s, of the same site or another, reads and changes nothing with the session of its visitor',
    async (host) => {
      const hostile = await startHostileSite()
      const { baseUrl: service, dashboardUrl: dashboard, organisationId, apiKey } = dev()
      const newest = () =>
        createPurser({ apiKey, baseUrl: service }).organisations.auditLog({ limit: 1 }).toArray({ limit: 1 })
      try {
        await open({}, async (page, _, context) => {
          await page.goto(`${dashboard}/test/account`)
          await page.getByText('This browser').waitFor()
          const [before] = await newest()
          const cookiesSent: string[] = []
          const evil = await context.newPage()
          evil.on('request', (request) => {
            if (!request.url().startsWith(service)) return
            void request.allHeaders().then(({ cookie }) => cookie !== undefined && cookiesSent.push(cookie))
          })
          await evil.goto(`http://${host}:${hostile.port}/`)
          expect(await attack(evil, { service, dashboard, organisationId })).toEqual({ read: [], framed: [] })
          // A port is no part of a site: there the cookie comes along, and the service alone refuses.
          const isSameSite = host === 'localhost'
          expect(cookiesSent.some((cookie) => cookie.includes('session_token'))).toBe(isSameSite)
          expect(await newest()).toEqual([before])
          await page.reload()
          await page.getByText('This browser').waitFor()
          await page.goto(`${dashboard}/test/settings`)
          await page.getByText('Local development, where you are owner.').waitFor()
        })
      } finally {
        await hostile.stop()
      }
    },
  )

  /** Buttons by which somebody with a higher role changes something. */
  const changing =
    /^(?:Add|Invite|Change|Remove|Rename|New|Delete|Refund|Seal|Share|Make|Send|Withdraw|Open a test|Save|Approve|Revoke)\b/

  test('a viewer sees every page under the content security policy without a fault, and can change nothing', async () => {
    const demo = await demoData()
    const email = 'viewer@example.com'
    const { dashboardUrl, baseUrl, apiKey, organisationId } = dev()
    const purser = createPurser({ apiKey, baseUrl })
    await purser.organisations.members.add({ email, role: 'viewer' })
    await open({ storageState: await signedInBy(stage, email) }, async (page, { faults }) => {
      await page.goto(`${dashboardUrl}/test`)
      await page.getByRole('button', { name: 'Join as viewer' }).click()
      await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
      const offered: string[] = []
      for (const { name, path } of pages) {
        const response = await page.goto(`${dashboardUrl}/test${pathOf(path, demo)}`)
        const policy = response?.headers()['content-security-policy'] ?? ''
        expect([name, policy]).toEqual([name, expect.stringContaining("default-src 'self'")])
        expect([name, policy]).not.toEqual([name, expect.stringContaining('unsafe')])
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.waitForFunction(() => document.querySelector('.skeleton') === null)
        // What is of the person alone stays theirs.
        if (name === 'account') continue
        const buttons = await page
          .locator('main')
          .getByRole('button', { name: changing, disabled: false })
          .allTextContents()
        offered.push(...buttons.map((text) => `${name}: ${text}`))
      }
      expect(offered).toEqual([])
      expect(faults).toEqual([])
      const refused = await page.evaluate(
        async ({ organisation, wallet }) => {
          const headers = {
            'content-type': 'application/json',
            'x-service-organisation': organisation,
            'x-service-environment': 'test',
          }
          const writes: readonly (readonly [string, string, unknown])[] = [
            ['PATCH', '/organisations/current', { name: 'Taken over' }],
            ['POST', '/organisations/current/members', { email: 'friend@example.com', role: 'admin' }],
            ['POST', '/organisations/current/api-keys', { name: 'Mine', environment: 'test' }],
            ['POST', '/vaults', { description: 'Mine', ttl: '1h' }],
            ['PUT', `/wallet-infra/master-wallets/${wallet}/policy`, { operations: {}, tokens: {} }],
          ]
          const statuses: number[] = []
          for (const [method, path, body] of writes)
            statuses.push((await fetch(path, { method, headers, body: JSON.stringify(body) })).status)
          return statuses
        },
        { organisation: organisationId, wallet: demo.walletId ?? '' },
      )
      expect(refused).toEqual(refused.map(() => 403))
    })
  })
}
