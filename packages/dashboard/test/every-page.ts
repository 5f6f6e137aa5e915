import { expect, test } from 'vitest'
import { makeSignInLink } from '../../server/src/features/people/index.ts'
import { expectAccessible, inspected } from './accessible.ts'
import type { DemoData } from './demo-data.ts'
import { type Section, sectionNames, sections } from './pages.ts'
import type { Stage } from './people-scenarios.ts'
import { joinedAs, pathOf, show, shown, type signIn } from './stage.ts'
import { groupOf, pathOfState, stateGroups, states } from './states.ts'

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
      await open(inspected, async (page, { faults }) => {
        for (const { name, url } of visited) {
          await show(page, url)
          await expectAccessible(page, name)
        }
        expect(faults).toEqual([])
      })
    },
  )

  test.each(stateGroups)(
    'what is shown of the group %s is accessible in both themes and fits a phone',
    async (group) => {
      const demo = await demoData()
      const found = states.filter((state) => groupOf(state) === group)
      const who = found[0]?.who
      const storageState = who === undefined ? {} : { storageState: await stateOf(who) }
      await open({ ...inspected, ...storageState }, async (page) => {
        let isAltered = false
        for (const state of found) {
          const url = `${dev().dashboardUrl}${pathOfState(state, demo)}`
          await state.before?.(page)
          // What is made on a page, such as a refusal, belongs to one document, which is loaded with it.
          if (state.before === undefined && !isAltered) await show(page, url)
          else await page.goto(url).then(() => shown(page))
          await state.act?.(page)
          await expectAccessible(page, state.name)
          isAltered = state.before !== undefined
          if (isAltered) await page.unrouteAll({ behavior: 'wait' })
        }
      })
    },
  )

  test('a reader who wants no motion gets none: a change of the theme starts no transition', async () => {
    await open(inspected, async (page) => {
      await page.goto(`${dev().dashboardUrl}/test`)
      await shown(page)
      const started = await page.evaluate(() => {
        document.documentElement.classList.toggle('dark')
        return document.getAnimations().length
      })
      expect(started).toBe(0)
    })
  })

  test('the documentation is accessible in both themes, fits a phone, and fails nowhere', async () => {
    const paths = ['', '/quick-start', '/events', '/operations', '/errors/duplicate-payment', '/search?q=webhook']
    await open(inspected, async (page, { faults }) => {
      for (const path of paths) {
        await page.goto(`${dev().baseUrl}/docs${path}`)
        await expectAccessible(page, `/docs${path}`)
      }
      expect(faults).toEqual([])
    })
  })

  test('the page of a one-time link is accessible in both themes and fits a phone', async () => {
    const { server, baseUrl } = dev()
    const link = await makeSignInLink(server.deps, server.deps.db, { email: 'reader@example.com', baseUrl })
    await open(inspected, async (page, { faults }) => {
      await page.goto(link)
      await expectAccessible(page, 'one-time link')
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
      expect(await page.evaluate(() => navigator.clipboard.readText())).toContain('npm ci && npm start')
      expect(faults).toEqual([])
    })
  })

  /** Buttons by which somebody with a higher role changes something. */
  const changing =
    /^(?:Add|Invite|Change|Remove|Rename|New|Delete|Refund|Seal|Share|Make|Send|Withdraw|Open a test|Save|Approve|Revoke)\b/

  let viewer: ReturnType<typeof signIn> | undefined

  /** The cookies of a viewer who joined the organisation. */
  function viewerState(): ReturnType<typeof signIn> {
    viewer ??= joinedAs({ dev, browser }, { email: 'viewer@example.com', role: 'viewer' })
    return viewer
  }

  /** The cookies of somebody other than the owner. */
  function stateOf(who: 'viewer' | 'test-only' | 'nobody'): ReturnType<typeof signIn> {
    if (who === 'viewer') return viewerState()
    if (who === 'nobody') return Promise.resolve({ cookies: [], origins: [] })
    return joinedAs({ dev, browser }, { email: 'invited.by.a.test.key@example.com', role: 'member' })
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
