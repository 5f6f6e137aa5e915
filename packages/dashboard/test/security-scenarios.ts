import { createPurser } from '@purser/sdk'
import { expect, test } from 'vitest'
import { attack, startHostileSite } from './hostile-page.ts'
import type { Stage } from './people-scenarios.ts'

/** What pages of others cannot do, in the browser. */
export function securityScenarios({ dev, open }: Stage): void {
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
          await page.getByText('You are an owner of Local development.').waitFor()
        })
      } finally {
        await hostile.stop()
      }
    },
  )
}
