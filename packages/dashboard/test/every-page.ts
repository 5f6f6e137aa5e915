import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { DemoData } from './demo-data.ts'
import { type Section, sectionNames, sections } from './pages.ts'
import type { Stage } from './people-scenarios.ts'
import { joinedAs, pathOf, show, type signIn } from './stage.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const AxeResult = z.array(z.object({ id: z.string(), impact: z.string().nullable(), nodes: z.array(z.string()) }))

/** Serious and critical findings, as `rule: what it found`. The theme changes colors alone, so its second run needs no other rule. */
async function findingsOn(page: Page, rules: 'all' | 'color-contrast'): Promise<string[]> {
  const options = { resultTypes: ['violations'], ...(rules !== 'all' && { runOnly: [rules] }) }
  const found: unknown = await page.evaluate(
    `axe.run(document, ${JSON.stringify(options)})
      .then(({ violations }) => violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ html }) => html) })))`,
  )
  return AxeResult.parse(found)
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).join(' | ')}`)
}

const desktop = { width: 1440, height: 900 }
const phone = { width: 360, height: 740 }

/** What holds for each page, in a test for each section of them. */
export function everyPageScenarios({ dev, browser, open }: Stage, demoData: () => Promise<DemoData>): void {
  const urlsOf = async (section: Section) => {
    const demo = await demoData()
    return sections[section].map(({ name, path }) => ({
      name,
      url: `${dev().dashboardUrl}/test${pathOf(path, demo)}`,
    }))
  }

  test.each(sectionNames)(
    'every page of %s is accessible in both themes, fits a phone, and fails nowhere',
    async (section) => {
      const visited = await urlsOf(section)
      const options = { colorScheme: 'light', reducedMotion: 'reduce', viewport: desktop, bypassCSP: true } as const
      await open(options, async (page, { faults }) => {
        for (const { name, url } of visited) {
          await show(page, url)
          if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
          expect([name, 'light', await findingsOn(page, 'all')]).toEqual([name, 'light', []])
          await page.emulateMedia({ colorScheme: 'dark' })
          await page.waitForFunction(
            () => document.documentElement.classList.contains('dark') && document.getAnimations().length === 0,
          )
          expect([name, 'dark', await findingsOn(page, 'color-contrast')]).toEqual([name, 'dark', []])
          await page.emulateMedia({ colorScheme: 'light' })
          await page.setViewportSize(phone)
          // A chart follows the width of its card a frame later.
          const widthOf = async () => [name, await page.evaluate(() => document.documentElement.scrollWidth)]
          await expect.poll(widthOf).toEqual([name, phone.width])
          await page.setViewportSize(desktop)
        }
        expect(faults).toEqual([])
      })
    },
  )

  test('the documentation is accessible in both themes, fits a phone, and fails nowhere', async () => {
    const paths = ['', '/quick-start', '/events', '/operations', '/errors/duplicate-payment', '/search?q=webhook']
    const options = { colorScheme: 'light', viewport: desktop, bypassCSP: true } as const
    await open(options, async (page, { faults }) => {
      for (const path of paths) {
        await page.goto(`${dev().baseUrl}/docs${path}`)
        await page.evaluate(axe)
        expect([path, 'light', await findingsOn(page, 'all')]).toEqual([path, 'light', []])
        await page.emulateMedia({ colorScheme: 'dark' })
        expect([path, 'dark', await findingsOn(page, 'color-contrast')]).toEqual([path, 'dark', []])
        await page.emulateMedia({ colorScheme: 'light' })
        await page.setViewportSize(phone)
        expect([path, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([path, phone.width])
        await page.setViewportSize(desktop)
      }
      expect(faults).toEqual([])
    })
  })

  test('the documentation is searched with the keyboard, and its code is copied', async () => {
    await open({ permissions: ['clipboard-read', 'clipboard-write'] }, async (page, { faults }) => {
      await page.goto(`${dev().baseUrl}/docs`)
      await page.keyboard.press('/')
      await page.keyboard.type('verify webhook signature')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Results for' }).waitFor()
      await page.getByRole('main').getByRole('link').first().click()
      await page.waitForURL(/\/docs\/\w/)
      await page.goto(`${dev().baseUrl}/docs/quick-start`)
      await page.getByRole('button', { name: 'Copy' }).first().click()
      await page.getByRole('button', { name: 'Copied' }).waitFor()
      expect(await page.evaluate(() => navigator.clipboard.readText())).toContain('npm run build')
      expect(faults).toEqual([])
    })
  })

  /** Buttons by which somebody with a higher role changes something. */
  const changing =
    /^(?:Add|Invite|Change|Remove|Rename|New|Delete|Refund|Seal|Share|Make|Send|Withdraw|Open a test|Save|Approve|Revoke)\b/

  let viewer: ReturnType<typeof signIn> | undefined

  /** The cookies of a viewer who joined the organization. */
  function viewerState(): ReturnType<typeof signIn> {
    viewer ??= joinedAs({ dev, browser }, { email: 'viewer@example.com', role: 'viewer' })
    return viewer
  }

  test.each(sectionNames)(
    'a viewer sees every page of %s under the content security policy without a fault, and is offered no change',
    async (section) => {
      const visited = await urlsOf(section)
      await open({ storageState: await viewerState() }, async (page, { faults }) => {
        for (const { name, url } of visited) {
          const policy = (await page.request.get(url)).headers()['content-security-policy'] ?? ''
          expect([name, policy]).toEqual([name, expect.stringContaining("default-src 'self'")])
          expect([name, policy]).not.toEqual([name, expect.stringContaining('unsafe')])
          await show(page, url)
          // What is of the person alone stays theirs.
          if (name === 'account') continue
          const buttons = page.locator('main').getByRole('button', { name: changing, disabled: false })
          expect([name, await buttons.allTextContents()]).toEqual([name, []])
        }
        expect(faults).toEqual([])
      })
    },
  )

  test('a viewer who calls the service without its buttons is refused each write', async () => {
    const demo = await demoData()
    await open({ storageState: await viewerState() }, async (page) => {
      await page.goto(`${dev().dashboardUrl}/test`)
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
        { organisation: dev().organisationId, wallet: demo.walletId ?? '' },
      )
      expect(refused).toEqual([403, 403, 403, 403, 403])
    })
  })
}
