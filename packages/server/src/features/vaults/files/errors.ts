import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'file-not-found': {
    status: 404,
    title: 'File Not Found',
    detail: 'The vault has no such file.',
    causes: [
      'The vault has no file with this `fil_…`, or the file was deleted.',
      'A signed link to the file is of another environment than this deployment serves.',
    ],
    fix: '`GET /vaults/{id}` lists the files that the vault has, with their ids.',
  },
  'malformed-multipart': {
    status: 400,
    title: 'Malformed Multipart',
    detail: 'The body is not valid multipart/form-data, or it ends too early.',
    causes: [
      '`Content-Type` was set by hand and lacks the `boundary`, or has another one than the body.',
      'A part has no `name`, or the connection ended before the closing boundary.',
    ],
    fix: 'Let the HTTP client make both the body and its `Content-Type`: pass a `FormData` to `fetch`, `-F file=@report.pdf` to curl, `files={"file": …}` to Python’s requests, and set no `Content-Type` yourself.',
  },
  'file-too-large': {
    status: 413,
    title: 'File Too Large',
    detail: 'The file is larger than the plan allows. limit is the maximum size in bytes.',
    causes: [
      'The file has more bytes than the plan allows for one file (`limit`: 10 MiB on hobby, 100 MiB on pro, 1 GiB on enterprise). Nothing was stored.',
    ],
    fix: 'Compress or split the file, or raise the plan at `upgradeUrl`.',
  },
  'range-not-satisfiable': {
    status: 416,
    title: 'Range Not Satisfiable',
    detail: 'The file has no bytes in the requested range; size is its number of bytes.',
    causes: [
      'The `Range` header begins at or after the end of the file; `size` and the header `Content-Range` give the length.',
      'A download is resumed that was already complete.',
    ],
    fix: 'If you have `size` bytes, the download is complete. Otherwise request from an offset below `size`, or leave `Range` out.',
  },
  'digest-mismatch': {
    status: 422,
    title: 'Digest Mismatch',
    detail: 'The received content does not match Content-Digest. Nothing was stored; send it again.',
    causes: [
      'The SHA-256 in `Content-Digest` is of other bytes than arrived: a changed file, a digest of the whole form instead of the file, or hexadecimal instead of base64.',
      'The content was damaged on the way.',
    ],
    fix: 'Compute the digest over the bytes that you send and write it as `Content-Digest: sha-256=:<base64>:`. If the digest is right, upload again.',
  },
})
