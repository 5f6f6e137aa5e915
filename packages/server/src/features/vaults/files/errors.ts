import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'file-not-found': { status: 404, title: 'File Not Found', detail: 'The vault has no such file.' },
  'malformed-multipart': {
    status: 400,
    title: 'Malformed Multipart',
    detail: 'The body is not the multipart/form-data that its Content-Type announces, or it ends too early.',
  },
  'file-too-large': {
    status: 413,
    title: 'File Too Large',
    detail: 'The file is larger than the plan allows; limit is the most bytes it may have.',
  },
  'range-not-satisfiable': {
    status: 416,
    title: 'Range Not Satisfiable',
    detail: 'The file has no bytes in the requested range; size is its number of bytes.',
  },
  'digest-mismatch': {
    status: 422,
    title: 'Digest Mismatch',
    detail: 'The received content does not match Content-Digest. Nothing was stored.',
  },
})
