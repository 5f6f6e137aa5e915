import { expect, test } from 'vitest'
import { z } from 'zod'
import { validationProblem, withMissing } from './problem.ts'

const walletId = z.object({
  walletId: z.union([
    z.string().startsWith('mwt_', 'must begin with mwt_'),
    z.string().startsWith('cad_', 'must begin with cad_'),
  ]),
})

test.each([
  [{ walletId: 'byw_1' }, 'must begin with mwt_, or must begin with cad_'],
  [{}, 'is missing'],
  [{ walletId: 7 }, 'Invalid input: expected string, received number'],
])('the fault of %j, which fits no alternative of a union, is %s', (body, message) => {
  const issues = walletId.safeParse(body, withMissing).error?.issues ?? []
  expect(validationProblem(issues).members).toEqual({ errors: [{ path: '/walletId', message }] })
})
