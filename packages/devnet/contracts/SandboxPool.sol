// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IToken {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// A constant-product market for any pair of tokens, so that a swap on a local chain moves real balances at a price that moves.
/// The zero address is the chain's own coin. It has no constructor: code is set at a known address. Anybody may add to a pair, and
/// nobody takes out but by swapping: it is test money.
contract SandboxPool {
    uint256 private constant FEE_PARTS = 9_970;
    uint256 private constant PARTS = 10_000;

    /// What the pair of the first token with the second holds of the first.
    mapping(address => mapping(address => uint256)) public reserves;
    /// What a swap paid out, by the number that its sender gave it. Zero for one that there was not.
    mapping(bytes32 => uint256) public paid;

    event Swapped(bytes32 indexed id, address tokenIn, uint256 amountIn, address tokenOut, uint256 amountOut, address to);

    function add(address tokenA, uint256 amountA, address tokenB, uint256 amountB) external payable {
        require(tokenA != tokenB, "SandboxPool: same token");
        require(msg.value == (tokenA == address(0) ? amountA : tokenB == address(0) ? amountB : 0), "SandboxPool: value");
        _take(tokenA, amountA);
        _take(tokenB, amountB);
        reserves[tokenA][tokenB] += amountA;
        reserves[tokenB][tokenA] += amountB;
    }

    /// Rounded down: what x * y = k leaves after three thousandths.
    function quote(address tokenIn, address tokenOut, uint256 amountIn) public view returns (uint256) {
        uint256 reserveIn = reserves[tokenIn][tokenOut];
        uint256 reserveOut = reserves[tokenOut][tokenIn];
        if (amountIn == 0 || reserveIn == 0 || reserveOut == 0) return 0;
        uint256 kept = amountIn * FEE_PARTS;
        return kept * reserveOut / (reserveIn * PARTS + kept);
    }

    function swap(bytes32 id, address tokenIn, uint256 amountIn, address tokenOut, uint256 amountOutMin, address to)
        external
        payable
        returns (uint256 amountOut)
    {
        require(paid[id] == 0, "SandboxPool: number used");
        amountOut = quote(tokenIn, tokenOut, amountIn);
        require(amountOut > 0 && amountOut >= amountOutMin, "SandboxPool: too little out");
        require(msg.value == (tokenIn == address(0) ? amountIn : 0), "SandboxPool: value");
        paid[id] = amountOut;
        reserves[tokenIn][tokenOut] += amountIn;
        reserves[tokenOut][tokenIn] -= amountOut;
        _take(tokenIn, amountIn);
        _give(tokenOut, to, amountOut);
        emit Swapped(id, tokenIn, amountIn, tokenOut, amountOut, to);
    }

    function _take(address token, uint256 amount) private {
        if (token == address(0)) return;
        require(IToken(token).transferFrom(msg.sender, address(this), amount), "SandboxPool: transfer failed");
    }

    function _give(address token, address to, uint256 amount) private {
        if (token != address(0)) {
            require(IToken(token).transfer(to, amount), "SandboxPool: transfer failed");
            return;
        }
        (bool sent,) = to.call{value: amount}("");
        require(sent, "SandboxPool: transfer failed");
    }
}
