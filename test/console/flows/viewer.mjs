// Signing in and out, with what a viewer and a thief can do.
import { assert, base, call, field, flow, go, made, open, press, revision, see, settled, picture } from './lib.mjs'

const half = 'gatehouse.session'

await flow(async (step) => {
  await made('/upstream', { upstream_name: 'blue', upstream_ip: '192.0.2.1', upstream_port: 80 })
  await made('/service', { service_name: 'shop', fqdn: 'shop.example.com' })
  await made('/proxy', { name: 'gw' })
  const viewer = (await made('/token', { token_name: 'ann', token_role: 'viewer' })).token

  step('nothing is shown before the sign-in, and a wrong token is refused')
  const page = await open('#/upstream/blue')
  await see(page, 'Sign in to Gatehouse')
  await picture(page, 'signin')
  await field(page, 'Token').fill(`${viewer.slice(0, -1)}_`)
  await press(page, 'Sign in')
  await see(page, /the token is not valid/)
  assert.ok(!(await page.content()).includes('192.0.2.1'))

  step('a viewer sees the page that was asked for')
  await field(page, 'Token').fill(viewer)
  await press(page, 'Sign in')
  await see(page, '192.0.2.1')
  await see(page, 'viewer')

  step('neither scripts nor the storage of the browser have the token, and scripts have no cookie')
  const [cookie] = await page.context().cookies()
  assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite], ['gatehouse_session', true, 'Strict'])
  const seen = await page.evaluate(() => ({ cookie: document.cookie, local: { ...localStorage }, session: { ...sessionStorage } }))
  assert.equal(seen.cookie, '')
  assert.ok(!JSON.stringify(seen).includes(viewer) && !JSON.stringify(seen).includes(cookie.value))

  step('a viewer sees no button that it may not press')
  for (const place of ['/', '/service', '/service/shop', '/upstream', '/upstream/blue', '/proxy/gw', '/token', '/history', '/history/1', '/secret', '/filter', '/route', '/envoys', '/events', '/explain', '/document', '/map', '/limits']) {
    await go(page, place)
    const names = [...(await page.getByRole('button').allInnerTexts()), ...(await page.getByRole('link').allInnerTexts())].map((t) => t.trim())
    const writes = names.filter((n) => /^(New|Edit|Delete|Copy$|Attach|Detach|Roll back|Review|Discard|First steps|Revoke)/.test(n))
    assert.deepEqual(writes, [], place)
  }

  step('a forged write of a viewer is refused')
  const before = await revision()
  const forged = await page.evaluate(async (half) => {
    const headers = { 'Content-Type': 'application/json', 'Gatehouse-Session': localStorage.getItem(half) }
    const statuses = []
    for (const [method, path] of [['DELETE', '../upstream/blue'], ['POST', '../token'], ['PUT', '../config']]) statuses.push((await fetch(path, { method, headers, body: '{}' })).status)
    return statuses
  }, half)
  assert.deepEqual(forged, [403, 403, 403])
  const half_ = await page.evaluate((half) => localStorage.getItem(half), half)
  const stolen = { Cookie: `gatehouse_session=${cookie.value}`, 'Gatehouse-Session': half_ }
  const use = async (headers) => (await fetch(new URL('upstream', base), { headers })).status
  assert.equal(await use(stolen), 200, 'before the sign-out')
  assert.equal(await use({ Cookie: stolen.Cookie }), 401, 'the cookie alone, as other ports of the host get it')
  assert.equal(await use({ 'Gatehouse-Session': half_ }), 401, 'the storage alone')
  assert.equal(await revision(), before)

  step('after the sign-out a stolen session is worth nothing')
  await page.getByRole('button', { name: /Signed in as ann/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await see(page, 'Sign in to Gatehouse')
  assert.equal(await use(stolen), 401)
  assert.deepEqual(await page.context().cookies(), [])
  assert.equal(await page.evaluate((half) => localStorage.getItem(half), half), null)

  step('a token that is revoked ends its sessions')
  await field(page, 'Token').fill(viewer)
  await press(page, 'Sign in')
  await settled(page)
  assert.equal((await call('DELETE', '/token/ann')).status, 200)
  await go(page, '/history')
  await see(page, 'Sign in to Gatehouse')
  assert.deepEqual(page.complaints, [])
})
