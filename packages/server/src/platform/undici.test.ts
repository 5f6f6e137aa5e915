import * as whole from 'undici'
import { expect, test } from 'vitest'
import { buildConnector, errors, Pool } from './undici.ts'

test('the parts of undici are those of its entry', () => {
  expect(Pool).toBe(whole.Pool)
  expect(errors).toBe(whole.errors)
  expect(buildConnector).toBe(whole.buildConnector)
})
